# Not in the book: runs the modules of the chapter, and fails if they don't do what it says.
Logger.configure(level: :emergency)
Code.require_file("app.exs", __DIR__)

{:ok, _} = App.start_link([])
Counter.add(1)
1 = Counter.sum()
{:ok, session} = App.open("anna")
%{active: 1} = DynamicSupervisor.count_children(Sessions)

watch = for process <- [Process.whereis(Counter), session], do: Process.monitor(process)
Counter.add(:one)
for ref <- watch, do: receive(do: ({:DOWN, ^ref, :process, _, _} -> :ok))
[_, _] = Supervisor.which_children(App)
0 = Counter.sum()
%{active: 0} = DynamicSupervisor.count_children(Sessions)
IO.puts("ok")
