%% Evaluated in RabbitMQ's own machine before it boots. Says "vnet: answers" when a publish on each port was acknowledged.
%% PORTS, a file beside this one, holds [{amqp, Port}, {mqtt, Port}].

Until = fun Until(Probe) ->
  try Probe() catch _:_ -> timer:sleep(20), Until(Probe) end
end,
Ask = fun(Socket, Bytes, Wanted) ->
  ok = gen_tcp:send(Socket, Bytes),
  Wanted(Socket)
end,

%% AMQP 0-9-1: a frame is type, channel, size, payload, 16#CE.
Frame = fun(Type, Channel, Payload) ->
  Body = iolist_to_binary(Payload),
  [<<Type, Channel:16, (byte_size(Body)):32>>, Body, 16#CE]
end,
Method = fun(Class, Id) -> fun(Socket) ->
  {ok, <<1, _:16, Size:32>>} = gen_tcp:recv(Socket, 7, 5000),
  {ok, Payload} = gen_tcp:recv(Socket, Size + 1, 5000),
  <<Class:16, Id:16, _/binary>> = Payload
end end,
Amqp = fun(Socket) ->
  Ask(Socket, <<"AMQP", 0, 0, 9, 1>>, Method(10, 10)),
  Login = <<0, "guest", 0, "guest">>,
  Ask(Socket, Frame(1, 0, <<10:16, 11:16, 0:32, 5, "PLAIN", (byte_size(Login)):32, Login/binary, 5, "en_US">>), Method(10, 30)),
  ok = gen_tcp:send(Socket, Frame(1, 0, <<10:16, 31:16, 1:16, 131072:32, 0:16>>)),
  Ask(Socket, Frame(1, 0, <<10:16, 40:16, 1, "/", 0, 0>>), Method(10, 41)),
  Ask(Socket, Frame(1, 1, <<20:16, 10:16, 0>>), Method(20, 11)),
  Ask(Socket, Frame(1, 1, <<85:16, 10:16, 0>>), Method(85, 11)),
  %% To the default exchange, for a queue that is not there: confirmed all the same.
  Ask(Socket, [Frame(1, 1, <<60:16, 40:16, 0:16, 0, 10, "vnet-ready", 0>>), Frame(2, 1, <<60:16, 0:16, 1:64, 0:16>>), Frame(3, 1, <<"?">>)],
      Method(60, 80)),
  Ask(Socket, Frame(1, 0, <<10:16, 50:16, 200:16, 0, 0:16, 0:16>>), Method(10, 51))
end,

%% MQTT 3.1.1: CONNECT, CONNACK, PUBLISH at QoS 1, PUBACK, DISCONNECT.
Bytes = fun(Expected) -> fun(Socket) ->
  {ok, Expected} = gen_tcp:recv(Socket, byte_size(Expected), 5000)
end end,
Mqtt = fun(Socket) ->
  Ask(Socket, <<16, 22, 0, 4, "MQTT", 4, 2, 60:16, 0, 10, "vnet-ready">>, Bytes(<<32, 2, 0, 0>>)),
  Ask(Socket, <<16#32, 14, 0, 10, "vnet-ready", 0, 1>>, Bytes(<<64, 2, 0, 1>>)),
  ok = gen_tcp:send(Socket, <<16#E0, 0>>)
end,

%% rabbitmq_mqtt 3.10 waits 3 to 6 s for other nodes of a cluster (mqtt_node:start/2) unless its Raft server is there already.
Early = fun() ->
  {module, _} = code:ensure_loaded(mqtt_machine),
  Until(fun() -> #{} = ra_system:fetch(coordination) end),
  Uid = ra:new_uid(<<"mqtt_node">>),
  Id = {mqtt_node, node()},
  undefined = ra_directory:uid_of(coordination, mqtt_node),
  ra:start_server(coordination, #{cluster_name => mqtt_node, id => Id, uid => Uid, friendly_name => "mqtt_node",
    initial_members => [], log_init_args => #{uid => Uid}, tick_timeout => 65, machine => {module, mqtt_machine, #{}}})
end,

%% RabbitMQ loads every module of its applications, and Erlang looks for each in all 90 directories in turn, by four system calls and more for
%% each that has it not: most of what a start costs. Loaded here from where they are, they are not looked for. What fails here is looked for later.
Load = fun Load(Application, Seen) ->
  case lists:member(Application, Seen) orelse code:where_is_file(atom_to_list(Application) ++ ".app") of
    Over when Over =:= true; Over =:= non_existing -> Seen;
    File ->
      {ok, [{application, Application, Keys}]} = file:consult(File),
      Missing = [Module || Module <- proplists:get_value(modules, Keys, []), code:is_loaded(Module) =:= false],
      [code:load_abs(filename:join(filename:dirname(File), Module)) || Module <- Missing],
      lists:foldl(Load, [Application | Seen], proplists:get_value(applications, Keys, []))
  end
end,

{ok, [Ports]} = file:consult(filename:join(os:getenv("DIR"), "ports")),
{ok, [Plugins]} = file:consult(filename:join(os:getenv("DIR"), "plugins")),
lists:foldl(Load, [], [rabbitmq_prelaunch, rabbit, mnesia | Plugins]),
spawn(fun() ->
  case proplists:is_defined(mqtt, Ports) of
    true -> catch Early();
    false -> no_plugin
  end,
  [Until(fun() ->
     {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {nodelay, true}], 5000),
     try (case Protocol of amqp -> Amqp; mqtt -> Mqtt end)(Socket) after gen_tcp:close(Socket) end
   end) || {Protocol, Port} <- Ports],
  rabbit:await_startup(),
  %% These start programs for ever: epmd by another Erlang machine each minute, df up to ten times a second.
  catch supervisor:terminate_child(rabbit_sup, rabbit_epmd_monitor_sup),
  catch rabbit_disk_monitor:set_enabled(false),
  io:format("vnet: answers~n")
end).
