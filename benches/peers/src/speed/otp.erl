%% Erlang/OTP: processes of `proc_lib` under its `supervisor`, with a limit that is never reached.
%% Does one measurement, as the Rust programs do, and prints what they print.
-module(otp).
-behaviour(supervisor).

-export([main/1]).
-export([start_child/2, live/2, start_level/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(CHILDREN, 10000).
-define(TIMES, 10).
-define(ADDED, 1000).
-define(MESSAGES, 1000000).
-define(QUESTIONS, 50000).
-define(NAMES, 100000).
-define(LOOKUPS, 500000).
%% Each restart reads a list of all restarts in the period, so there are few.
-define(RESTARTS, 200).
%% The longest time for repetitions, in milliseconds.
-define(PATIENCE, 2000).

main([Work]) ->
    logger:set_primary_config(level, none),
    %% The number of starts, its goal, and the time of a failure.
    persistent_term:put(board, atomics:new(3, [])),
    persistent_term:put(main, self()),
    measure(Work),
    halt(0).

measure('idle-10000') -> idle(10000);
measure('idle-100000') -> idle(100000);
measure('idle-1000000') -> idle(1000000);
measure('restart-error') -> restart({again, exit});
measure('restart-panic') -> restart({again, error});
measure('storm-error') -> storm({storm, exit});
measure('storm-panic') -> storm({storm, error});
measure('one-for-all') -> one_for_all();
measure('crash-loop') -> crash_loop();
measure('deep') -> nested(lists:duplicate(1001, 1));
measure('wide') -> nested([10, 10, 10, 10]);
measure('message') -> message();
measure('ask') -> ask();
measure('lookup') -> lookup().

%% --- Measurements -------------------------------------------------------------------------------

idle(N) ->
    Before = peak_bytes(),
    expect(N),
    Began = now_ns(),
    {ok, App} = start(N, one_for_one, idle),
    reached(),
    say(start, (now_ns() - Began) / N),
    say(bytes, (peak_bytes() - Before) / N),
    say(stop, stop(App) / N).

%% The supervisor ends after all of its children.
stop(App) ->
    unlink(App),
    Monitor = monitor(process, App),
    Began = now_ns(),
    exit(App, shutdown),
    receive {'DOWN', Monitor, _, _, _} -> now_ns() - Began end.

restart(Life) ->
    {ok, _} = start(1, one_for_one, Life),
    say(p50, p50([receive {took, Took} -> Took end || _ <- lists:seq(1, ?RESTARTS)])).

storm(Life) ->
    persistent_term:put(runs, atomics:new(?CHILDREN, [])),
    {ok, _} = started(?CHILDREN, one_for_one, Life),
    expect(?CHILDREN * ?TIMES),
    Began = now_ns(),
    [tell(Index) || Index <- lists:seq(0, ?CHILDREN - 1)],
    reached(),
    say(each, (now_ns() - Began) / (?CHILDREN * ?TIMES)).

one_for_all() ->
    {ok, _} = started(?CHILDREN, one_for_all, on_demand),
    expect(?CHILDREN),
    Began = now_ns(),
    tell(0),
    reached(),
    say(back, (now_ns() - Began) / 1.0e6).

crash_loop() ->
    persistent_term:put(loops, atomics:new(1, [])),
    {ok, App} = started(?CHILDREN, one_for_one, looping),
    say(calm, p50(add(App, ?CHILDREN, ?ADDED, now_ms()))),
    tell(0),
    say(beside, p50(add(App, ?CHILDREN + ?ADDED, ?ADDED, now_ms()))).

add(_App, _Index, 0, _Began) ->
    [];
add(App, Index, Left, Began) ->
    case now_ms() - Began > ?PATIENCE of
        true ->
            [];
        false ->
            At = now_ns(),
            {ok, _} = supervisor:start_child(App, spec(Index, looping)),
            Took = receive {here, Index, Now} -> Now - At end,
            [Took | add(App, Index + 1, Left - 1, Began)]
    end.

nested(Widths) ->
    expect(lists:foldl(fun(Width, All) -> Width * All end, 1, Widths)),
    Began = now_ns(),
    {ok, App} = start_level(Widths),
    reached(),
    say(build, (now_ns() - Began) / 1.0e6),
    say(stop, stop(App) / 1.0e6).

message() ->
    {ok, Server} = gen_server:start_link(?MODULE, {server, ?MESSAGES}, []),
    Began = now_ns(),
    [gen_server:cast(Server, N) || N <- lists:seq(1, ?MESSAGES)],
    receive read -> say(each, (now_ns() - Began) / ?MESSAGES) end.

ask() ->
    {ok, Server} = gen_server:start_link(?MODULE, {server, 0}, []),
    Ask = fun(_) ->
        Began = now_ns(),
        1 = gen_server:call(Server, question),
        now_ns() - Began
    end,
    say(p50, p50(lists:map(Ask, lists:seq(1, ?QUESTIONS)))).

lookup() ->
    Names = [child_name(Index) || Index <- lists:seq(1, ?NAMES)],
    [register(Name, spawn_link(fun() -> receive stop -> ok end end)) || Name <- Names],
    {Begin, End} = lists:split(?NAMES div 2, Names),
    Main = self(),
    Began = now_ns(),
    Look = fun(All) ->
        spawn_link(fun() ->
            [true = is_pid(whereis(Name)) || _ <- lists:seq(1, ?LOOKUPS div ?NAMES), Name <- All],
            Main ! looked
        end)
    end,
    [Look(All) || All <- [Begin ++ End, End ++ Begin]],
    [receive looked -> ok end || _ <- [1, 2]],
    say(each, (now_ns() - Began) / (2 * ?LOOKUPS)).

%% --- Supervisors --------------------------------------------------------------------------------

start(N, Strategy, Life) ->
    supervisor:start_link(?MODULE, {supervisor, N, Strategy, Life}).

started(N, Strategy, Life) ->
    expect(N),
    App = start(N, Strategy, Life),
    reached(),
    App.

start_level(Widths) ->
    supervisor:start_link(?MODULE, {level, Widths}).

flags(Strategy) ->
    #{strategy => Strategy, intensity => 1000000000, period => 1}.

spec(Index, Life) ->
    #{id => Index, start => {?MODULE, start_child, [Index, Life]}}.

init({supervisor, N, Strategy, Life}) ->
    {ok, {flags(Strategy), [spec(Index, Life) || Index <- lists:seq(0, N - 1)]}};
init({level, [Width]}) ->
    {ok, {flags(one_for_one), [spec(Index, idle) || Index <- lists:seq(1, Width)]}};
init({level, [Width | Below]}) ->
    Child = fun(Index) ->
        #{id => Index, start => {?MODULE, start_level, [Below]}, type => supervisor}
    end,
    {ok, {flags(one_for_one), lists:map(Child, lists:seq(1, Width))}};
init({server, Messages}) ->
    {ok, {0, Messages}}.

handle_call(question, _From, State) ->
    {reply, 1, State}.

handle_cast(_N, {Read, Messages}) ->
    Read + 1 =:= Messages andalso (persistent_term:get(main) ! read),
    {noreply, {Read + 1, Messages}}.

%% --- Children -----------------------------------------------------------------------------------

start_child(Index, Life) ->
    {ok, proc_lib:spawn_link(?MODULE, live, [Index, Life])}.

live(0, {again, How}) ->
    Now = now_ns(),
    case atomics:get(board(), 3) of
        0 -> ok;
        Failed -> persistent_term:get(main) ! {took, Now - Failed}
    end,
    erlang:yield(),
    atomics:put(board(), 3, now_ns()),
    fail(How);
live(0, on_demand) ->
    listen(0, exit);
live(Index, {storm, How}) ->
    case atomics:add_get(persistent_term:get(runs), Index + 1, 1) of
        1 -> listen(Index, How);
        Run when Run =< ?TIMES -> begun(), fail(How);
        _ -> begun(), wait()
    end;
live(0, looping) ->
    case atomics:add_get(persistent_term:get(loops), 1, 1) of
        1 -> listen(0, exit);
        _ -> fail(exit)
    end;
live(Index, looping) when Index >= ?CHILDREN ->
    persistent_term:get(main) ! {here, Index, now_ns()},
    wait();
live(_Index, _Life) ->
    begun(),
    wait().

wait() ->
    receive stop -> ok end.

%% Fails on demand.
listen(Index, How) ->
    register(child_name(Index), self()),
    begun(),
    receive fail -> fail(How) end.

fail(exit) -> exit(out_of_luck);
fail(error) -> error(out_of_luck).

tell(Index) ->
    child_name(Index) ! fail.

child_name(Index) ->
    list_to_atom("child_" ++ integer_to_list(Index)).

%% --- Counters and figures -----------------------------------------------------------------------

board() ->
    persistent_term:get(board).

expect(More) ->
    atomics:put(board(), 2, atomics:get(board(), 1) + More).

begun() ->
    Board = board(),
    Started = atomics:add_get(Board, 1, 1),
    Started =:= atomics:get(Board, 2) andalso (persistent_term:get(main) ! reached),
    ok.

reached() ->
    receive reached -> ok end.

now_ns() -> erlang:monotonic_time(nanosecond).
now_ms() -> erlang:monotonic_time(millisecond).

p50(Took) ->
    lists:nth(length(Took) div 2 + 1, lists:sort(Took)).

say(Key, Figure) ->
    io:format("~s ~w~n", [Key, float(Figure)]).

peak_bytes() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [KiB]} = re:run(Status, "VmHWM:\\s*(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(KiB) * 1024.
