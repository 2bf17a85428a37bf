%% Runs scenarios on the supervisors of this Erlang/OTP, and writes down what happens.
%%
%% Takes a file of terms, one scenario each (`erlang.rs` says of what form), and writes lines: for
%% each scenario `scenario N`, for each step `step` and what happened in it. It judges nothing.
%%
%% A step is over when no process has anything to do; nothing here sleeps. What happens
%% goes into a table under strictly growing numbers, written by whom it happens to, so that causes
%% come before their effects. A watcher alone notices what a process cannot say itself.
-module(conformance).
-behaviour(supervisor).

-export([main/1]).
-export([init/1, start/2, start/3, child/2, watcher/0, log/2]).

%% How often others have their turn before a step counts as one that never ends.
-define(PATIENCE, 1000000).

main([In, Out]) ->
    try
        %% All runnable processes are in one queue, and none waits for code to be loaded.
        1 = erlang:system_info(schedulers),
        embedded = code:get_mode(),
        setup(),
        {ok, Scenarios} = file:consult(In),
        {ok, File} = file:open(Out, [raw, write, delayed_write]),
        ok = file:write(File, ["otp ", release(), $\n]),
        [ok = file:write(File, run(Scenario)) || Scenario <- Scenarios],
        ok = file:close(File),
        halt(0)
    catch
        Class:Reason:Stack ->
            io:format(standard_error, "~p:~p~n~p~n", [Class, Reason, Stack]),
            halt(1)
    end.

setup() ->
    process_flag(trap_exit, true),
    [ets:new(Table, [named_table, public, ordered_set]) || Table <- [lines, next, at, live, slow]],
    register(watcher, spawn_link(?MODULE, watcher, [])),
    logger:set_primary_config(level, error),
    logger:remove_handler(default),
    %% The first question for a module's level suspends the asking process.
    [logger:set_module_level(Module, none) || Module <- [gen_server, proc_lib]],
    ok = logger:set_module_level(supervisor, error),
    ok = logger:add_handler(?MODULE, ?MODULE, #{}).

release() ->
    Release = erlang:system_info(otp_release),
    File = filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"]),
    case file:read_file(File) of
        {ok, Version} -> string:trim(Version);
        {error, _} -> Release
    end.

run({Number, Tree, Starts, Slow, Steps}) ->
    [ets:delete_all_objects(Table) || Table <- [lines, next, at, live, slow]],
    case Slow of none -> ok; {Path, Sibling, How} -> ets:insert(slow, {Path, Sibling, How}) end,
    [next_starts(Worker, Outcomes) || {Worker, Outcomes} <- Starts],
    All = [start] ++ Steps ++ [list, {stop, "s"}],
    Traces = [["step\n", trace(case Step of start -> {start, Tree}; _ -> Step end)] || Step <- All],
    [exit(Pid, kill) || {Pid, _} <- ets:tab2list(live)],
    settle(),
    ["scenario ", integer_to_list(Number), $\n, Traces].

trace(Step) ->
    Replies = step(Step),
    Stuck = settle(),
    Lines = [Line || {_, Line} <- ets:tab2list(lines)],
    ets:delete_all_objects(lines),
    [[Line, $\n] || Line <- Lines ++ Replies ++ Stuck].

%%% Steps. Each gives what was replied.

step({start, Tree}) ->
    case alive("s") =:= [] andalso start("s", Tree) of
        false -> ["reply running"];
        {ok, _} -> ["reply ok"];
        {error, _} -> ["reply failed"]
    end;
step({next_starts, Path, Outcomes}) ->
    next_starts(Path, Outcomes),
    [];
step({ends, Ends}) ->
    case [{Path, Pid, How} || {Path, How} <- Ends, Pid <- alive(Path)] of
        [] ->
            ["reply nobody"];
        [{_, Pid, How}] ->
            Pid ! {ends, How},
            [];
        [{Path, _, _} | _] = Several ->
            %% The supervisor finds them all in its mailbox, in this order.
            [Sup] = alive(parent(Path)),
            ok = sys:suspend(Sup),
            [end_unobserved(Sup, Pid, How) || {_, Pid, How} <- Several],
            ok = sys:resume(Sup),
            []
    end;
step({kill, Path}) ->
    case alive(Path) of
        [] -> ["reply nobody"];
        [Pid] -> exit(Pid, kill), []
    end;
step({stop, Path}) ->
    call(Path, fun(Sup) -> gen_server:stop(Sup, shutdown, infinity) end);
step({start_child, Path, Spec}) ->
    call(Path, fun(Sup) -> supervisor:start_child(Sup, child_spec(Path, Spec)) end);
step({start_dynamic, Path, Name}) ->
    call(Path, fun(Sup) -> supervisor:start_child(Sup, [Name]) end);
step({terminate_child, Path, Id}) ->
    call(Path, fun(Sup) -> with(Path, Id, fun(X) -> supervisor:terminate_child(Sup, X) end) end);
step({restart_child, Path, Id}) ->
    call(Path, fun(Sup) -> with(Path, Id, fun(X) -> supervisor:restart_child(Sup, X) end) end);
step({delete_child, Path, Id}) ->
    call(Path, fun(Sup) -> with(Path, Id, fun(X) -> supervisor:delete_child(Sup, X) end) end);
step({child_spec, Path, Id}) ->
    call(Path, fun(Sup) -> with(Path, Id, fun(X) -> supervisor:get_childspec(Sup, X) end) end);
step({which_children, Path}) ->
    call(Path, fun(Sup) -> {text, which(Path, supervisor:which_children(Sup))} end);
step({count_children, Path}) ->
    call(Path, fun(Sup) -> {text, count(Path, supervisor:count_children(Sup))} end);
step(list) ->
    list("s").

next_starts(Path, Outcomes) ->
    Before = [Outcome || {_, Queue} <- ets:lookup(next, Path), Outcome <- Queue],
    ets:insert(next, {Path, Before ++ Outcomes}).

end_unobserved(Sup, Pid, How) ->
    Pid ! {ends, How},
    until(fun() ->
        {messages, Messages} = process_info(Sup, messages),
        lists:any(fun(M) -> is_tuple(M) andalso M =:= {'EXIT', Pid, element(3, M)} end, Messages)
    end).

%% Everything below a path that runs: its children, and how many they are.
list(Path) ->
    case alive(Path) of
        [] ->
            [];
        [Sup] ->
            Children = supervisor:which_children(Sup),
            Counts = supervisor:count_children(Sup),
            Below = lists:sort([P || {_, Pid, supervisor, _} <- Children, {_, P} <- ets:lookup(live, Pid)]),
            [["list ", Path, ": ", which(Path, Children)], ["count ", Path, ": ", count(Path, Counts)]
             | lists:append([list(P) || P <- Below])]
    end.

which(Path, Children) ->
    Words = [lists:flatten(word(Child)) || Child <- lists:reverse(Children)],
    case is_dynamic(Path) of
        _ when Words =:= [] -> "none";
        true -> lists:join($\s, lists:sort(Words));
        false -> lists:join($\s, Words)
    end.

word({undefined, Pid, _, _}) when is_pid(Pid) ->
    [{_, Path}] = ets:lookup(live, Pid),
    [lists:last(string:split(Path, "/", all)), "=running"];
word({Id, Pid, _, _}) when is_pid(Pid) -> [atom_to_list(Id), "=running"];
word({Id, undefined, _, _}) -> [atom_to_list(Id), "=stopped"];
word({Id, restarting, _, _}) -> [atom_to_list(Id), "=restarting"].

%% A supervisor with a template counts it as its only spec, so that is no number of children.
count(Path, Counts) ->
    Numbers = [integer_to_list(proplists:get_value(Key, Counts))
               || Key <- [specs, active, supervisors, workers]],
    lists:join($\s, case is_dynamic(Path) of true -> tl(Numbers); false -> Numbers end).

%% What a call names a child by: its id, or its last pid where children have none.
with(Path, Id, Call) ->
    case is_dynamic(Path) of
        false ->
            Call(Id);
        true ->
            case ets:lookup(at, Path ++ "/" ++ atom_to_list(Id)) of
                [{_, Pid}] -> Call(Pid);
                [] -> {error, not_found}
            end
    end.

call(Path, Call) ->
    case alive(Path) of
        [] -> ["reply noproc"];
        [Sup] -> [["reply ", answer(Call(Sup))]]
    end.

answer(ok) -> "ok";
answer({text, Text}) -> Text;
answer({ok, undefined}) -> "ignored";
answer({ok, Pid}) when is_pid(Pid) -> "ok";
answer({ok, #{restart := Restart, shutdown := Shutdown, type := Type} = Spec}) ->
    Significant = maps:get(significant, Spec, false),
    io_lib:format("~w ~w ~w ~w", [Restart, Shutdown, Type, Significant]);
answer({error, {already_started, _}}) -> "already_started";
answer({error, {bad_combination, _}}) -> "invalid";
answer({error, Reason}) when is_atom(Reason), Reason =/= no_start -> atom_to_list(Reason);
answer({error, _}) -> "failed".

%%% Children and supervisors.

%% A child of a supervisor with a template.
start(Path, Tree, Name) ->
    start(Path ++ "/" ++ atom_to_list(Name), Tree).

%% Runs in the supervisor above.
start(Path, worker) ->
    case ets:take(slow, Path) of
        [{_, Sibling, How}] -> [end_unobserved(self(), Pid, How) || Pid <- alive(Sibling)];
        [] -> ok
    end,
    case next_start(Path) of
        ok ->
            Pid = spawn_link(?MODULE, child, [self(), Path]),
            receive {Pid, up} -> ok end,
            {ok, Pid};
        Outcome ->
            tell(["try ", Path]),
            case Outcome of
                error -> {error, no_start};
                panic -> erlang:error(no_start);
                ignore -> ignore
            end
    end;
start(Path, {sup, _, _, _, _} = Tree) ->
    supervisor:start_link(?MODULE, {Path, Tree}).

next_start(Path) ->
    case ets:lookup(next, Path) of
        [{_, [Outcome | Rest]}] ->
            ets:insert(next, {Path, Rest}),
            Outcome;
        _ ->
            ok
    end.

child(Parent, Path) ->
    process_flag(trap_exit, true),
    watch(Path),
    tell(["start ", Path]),
    Parent ! {self(), up},
    receive
        {ends, How} ->
            tell(["end ", Path]),
            exit(case How of
                normal -> normal;
                shutdown -> shutdown;
                stop_self -> {shutdown, done};
                error -> failed;
                panic -> {panic, []}
            end);
        {'EXIT', Parent, killed} ->
            tell(["kill ", Path]),
            exit(orphan);
        {'EXIT', Parent, Reason} ->
            tell(["stop ", Path]),
            exit(Reason)
    end.

%% Runs in the supervisor itself.
init({Path, {sup, Strategy, Intensity, Auto, Children}}) ->
    watch(Path),
    tell(["init ", Path]),
    Specs = case Strategy of
        simple_one_for_one ->
            [Template] = Children,
            #{start := {M, F, [_, Tree]}} = Spec = child_spec(Path, Template),
            [Spec#{start := {M, F, [Path, Tree]}}];
        _ ->
            [child_spec(Path, Child) || Child <- Children]
    end,
    Flags = #{strategy => Strategy, intensity => Intensity, period => 3600},
    {ok, {case Auto of never -> Flags; _ -> Flags#{auto_shutdown => Auto} end, Specs}}.

child_spec(Path, {Id, Restart, Significant, Shutdown, Tree}) ->
    Spec = #{id => Id, start => {?MODULE, start, [Path ++ "/" ++ atom_to_list(Id), Tree]},
             restart => Restart, significant => Significant,
             type => case Tree of worker -> worker; _ -> supervisor end},
    case Shutdown of default -> Spec; _ -> Spec#{shutdown => Shutdown} end.

is_dynamic(Path) -> hd(lists:last(string:split(Path, "/", all))) =:= $d.

parent(Path) -> hd(string:split(Path, "/", trailing)).

%% The process at a path, if there is one.
alive(Path) ->
    [Pid || {_, Pid} <- ets:lookup(at, Path), ets:member(live, Pid)].

%%% What happened.

tell(Line) ->
    ets:insert(lines, {erlang:unique_integer([monotonic]), Line}).

watch(Path) ->
    watcher ! {watch, self(), Path},
    receive watched -> ok end.

watcher() ->
    receive
        {watch, Pid, Path} ->
            monitor(process, Pid),
            ets:insert(at, {Path, Pid}),
            ets:insert(live, {Pid, Path}),
            Pid ! watched;
        {'DOWN', _, process, Pid, Reason} ->
            [{_, Path}] = ets:take(live, Pid),
            ended(hd(lists:last(string:split(Path, "/", all))), Path, Reason)
    end,
    watcher().

ended($w, Path, killed) -> tell(["kill ", Path]);
ended($w, _, _) -> ok;
ended(_, Path, Reason) -> tell(["down ", Path, $\s, why(Reason)]).

why(normal) -> "clean";
why(shutdown) -> "clean";
why({shutdown, {failed_to_start_child, _, _}}) -> "failed";
why(killed) -> "killed";
why(Reason) -> io_lib:format("~0p", [Reason]).

%% Called by the logger, in the process that logs.
log(#{msg := {report, #{label := {supervisor, shutdown}, report := Report}}}, _) ->
    {reason, reached_max_restart_intensity} = lists:keyfind(reason, 1, Report),
    [tell(["gave_up ", Path]) || {_, Path} <- ets:lookup(live, self())],
    ok;
log(_, _) ->
    ok.

%%% Until no other process could be run.

settle() ->
    settle(?PATIENCE).

settle(0) ->
    ["stuck"];
settle(Patience) ->
    case erlang:statistics(run_queue) =:= 0 andalso lists:all(fun waits/1, ets:tab2list(live)) of
        true -> flush(), [];
        false -> erlang:yield(), settle(Patience - 1)
    end.

waits({Pid, _}) ->
    process_info(Pid, status) =:= {status, waiting}.

until(Condition) ->
    case Condition() of
        true -> ok;
        false -> erlang:yield(), until(Condition)
    end.

flush() ->
    receive {'EXIT', _, _} -> flush() after 0 -> ok end.
