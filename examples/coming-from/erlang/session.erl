%% Not in the book: what `sessions` starts.
-module(session).
-export([start_link/1]).

start_link(User) ->
    {ok, spawn_link(fun() -> receive {stop, User} -> ok end end)}.
