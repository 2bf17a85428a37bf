-module(app_sup).
-behaviour(supervisor).
-export([start_link/0, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) ->
    Flags = #{strategy => rest_for_one, intensity => 5, period => 60},
    Children = [
        #{id => counter, start => {counter, start_link, []}},
        #{id => sessions, start => {sessions, start_link, []}, type => supervisor}
    ],
    {ok, {Flags, Children}}.
