-module(sessions).
-behaviour(supervisor).
-export([start_link/0, open/1, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

open(User) -> supervisor:start_child(?MODULE, [User]).

init([]) ->
    Flags = #{strategy => simple_one_for_one},
    Session = #{id => session, start => {session, start_link, []}, restart => temporary},
    {ok, {Flags, [Session]}}.
