# shellcheck shell=bash
# The main job on real SocketCAN: a hand, telearm and an arm as three processes, and candump beside them. Once on a virtual bus, once on
# two emulated controllers with a queue and an echo of their own.
# shellcheck source=tests/rt_guest/rig.sh
. "$HERE/rig.sh"
file_begins

# follows BUS ARM_BUS: from nothing to a moving arm. BUS is telearm's, ARM_BUS the arm's end of the same wire.
follows() {
    sed "s/can = \"can0\"/can = \"$1\"/" rt-config/quest-piper.toml >$rig/plan.toml
    record "$1" "$rig/$1.candump"
    arm "$2"
    daemon $rig/plan.toml
    check "$1: the arm comes up and waits for an engage act" 0 '"reason":"awaiting_engage"|"reason":"operator_silent"' -- reaches 20 '"phase":"up"'
    hand hand 8888 demo
    check "$1: the pinch engages" 0 -- reaches 30 '"mode":"active"'
    sleep 3
    check "$1: no fault, no late cycle, real-time, no heap, no page fault" 0 -- reaches 1 '"late_cycles":0,.*"real_time":true,.*"taken_over":false,"input_away":0,"page_faults":0,"heap_operations":0'
}

follows vcan0 vcan0
check "vcan0: telearm stop" 0 'latched' -- telearm stop
check "vcan0: the lane is stopped, and says so" 0 '"reason":"stop_latched"' -- reaches 3 '"stop":\{"reason":"command".*"mode":"stopped"'
check "vcan0: telearm reset" 0 'nothing moves; engage anew' -- telearm reset
check "vcan0: nothing engages by itself" 0 '"reason":"awaiting_engage"' -- reaches 3 '"stop":null.*"mode":"ready"'
check "vcan0: telearm engage" 0 -- telearm engage
check "vcan0: it follows again" 0 -- reaches 5 '"mode":"active".*"engaged":2'
sleep 1
end arm-vcan0
check "vcan0: an arm that loses its power is a fault with a name" 0 -- reaches 5 '"mode":"fault","mode_detail":"feedback_lost.*"phase":"faulted"'
sent=$(value sent)
check "vcan0: telearm quit" 0 'brake and stay' -- telearm quit
wait "${processes[telearm]}" && ended=0 || ended=$?
it "vcan0: its exit status is 0" 0 -- test "$ended" -eq 0
end_record vcan0
# The first target of a start is the measured pose; it is no command of the lane.
check "vcan0: whole targets within the limits, as many as telearm counts, at rest in the end, no stop, no power off" 0 -- \
    bus_log $rig/vcan0.candump --targets $((sent + 1)) --travel 60 --rest 10 --ends-with-target
end_all

for bus in can0 can1; do scripts/can_activate $bus >/dev/null 2>&1; done
follows can0 can1
check "can0: telearm quit while it follows" 0 -- telearm quit
wait "${processes[telearm]}" && ended=0 || ended=$?
it "can0: its exit status is 0" 0 -- test "$ended" -eq 0
it "can0: the frames came back as echoes: none is in flight" 0 ' [0-6] in flight, 0 bus errors' -- cat $rig/telearm.log
end_record can0
check "can0: whole targets within the limits, at rest in the end, no stop, no power off" 0 -- \
    bus_log $rig/can0.candump --more-than 500 --travel 60 --rest 10 --ends-with-target
file_ends demo_path
