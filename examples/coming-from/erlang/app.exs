defmodule Counter do
  use GenServer

  def start_link(start), do: GenServer.start_link(__MODULE__, start, name: __MODULE__)
  def add(n), do: GenServer.cast(__MODULE__, {:add, n})
  def sum, do: GenServer.call(__MODULE__, :sum)

  @impl true
  def init(start), do: {:ok, start}

  @impl true
  def handle_call(:sum, _from, sum), do: {:reply, sum, sum}

  @impl true
  def handle_cast({:add, n}, sum), do: {:noreply, sum + n}
end

defmodule App do
  use Supervisor

  def start_link(_), do: Supervisor.start_link(__MODULE__, [], name: __MODULE__)

  @impl true
  def init([]) do
    children = [
      {Counter, 0},
      {DynamicSupervisor, name: Sessions}
    ]

    Supervisor.init(children, strategy: :rest_for_one, max_restarts: 5, max_seconds: 60)
  end

  def open(user) do
    session = %{id: user, start: {Agent, :start_link, [fn -> user end]}, restart: :temporary}
    DynamicSupervisor.start_child(Sessions, session)
  end
end
