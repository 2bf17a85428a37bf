-module(counter).
-behaviour(gen_server).
-export([start_link/0, add/1, sum/0]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

add(N) -> gen_server:cast(?MODULE, {add, N}).
sum() -> gen_server:call(?MODULE, sum).

init([]) -> {ok, 0}.

handle_call(sum, _From, Sum) -> {reply, Sum, Sum}.

handle_cast({add, N}, Sum) when is_integer(N) -> {noreply, Sum + N}.
