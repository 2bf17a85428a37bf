%% Not in the book: runs the modules of the chapter, and fails if they don't do what it says.
-module(check).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    {ok, Sup} = app_sup:start_link(),
    counter:add(1),
    1 = counter:sum(),
    {ok, Session} = sessions:open("anna"),
    1 = proplists:get_value(active, supervisor:count_children(sessions)),

    %% A message that no clause matches: the counter crashes, and what comes after it is restarted.
    First = whereis(counter),
    Sessions = whereis(sessions),
    Watch = [erlang:monitor(process, Pid) || Pid <- [First, Sessions, Session]],
    %% What is in the mailbox of the first one ends with it.
    erlang:suspend_process(First),
    counter:add(one),
    counter:add(2),
    erlang:resume_process(First),
    [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Watch],
    [_, _] = supervisor:which_children(Sup),
    0 = counter:sum(),
    0 = proplists:get_value(active, supervisor:count_children(sessions)),
    false = whereis(counter) =:= First,
    io:format("ok~n"),
    halt(0).
