# shellcheck shell=bash
# The whole program while its bus, its host or somebody else misbehaves: each mishap has a name in the status, moves nothing, and is
# left only by its own cure, a reset and a new engage act.
# shellcheck source=tests/rt_guest/rig.sh
. "$HERE/rig.sh"
file_begins

# engages LABEL: resets if need be, engages, and waits until the arm follows.
engages() {
    telearm reset >/dev/null 2>&1
    check "$1: after a reset it waits for an engage act" 0 -- reaches 8 '"stop":null.*"mode":"ready".*"reason":"awaiting_engage".*"phase":"up"'
    check "$1: and follows again" 0 -- engage_and_follow
    sleep 0.7
}
engage_and_follow() { telearm engage && reaches 5 '"mode":"active"'; }
faulted() { echo "\"mode\":\"fault\",\"mode_detail\":\"$1"; }

# can_error INTERFACE CLASS: an error frame, as a controller's driver makes one.
can_error() {
    python3 -I -S -c '
import socket, struct, sys
with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as can:
    can.bind((sys.argv[1],))
    can.send(struct.pack("=IB3x8x", 0x20000000 | int(sys.argv[2], 0), 8))' "$@"
}

sed 's/can = "can0"/can = "vcan0"/; s/engage = "pinch_hold"/engage = "command"/' rt-config/quest-piper.toml >$rig/plan.toml
record vcan0 $rig/faults.candump
hand hand 8888 reach
daemon $rig/plan.toml

# No arm on the bus.
check "silent bus: the start step says what is waited for" 0 '"reason":"arm_starting"' -- reaches 5 '"phase":"starting","phase_detail":"waitingforfeedback:nothingheard'
check "silent bus: then it is a fault with a name" 0 -- reaches 5 "$(faulted feedback_lost)"
arm vcan0
sleep 0.8
engages "silent bus"

# Two programs, one bus.
check "a second telearm on the interface is refused, with the process id of the first" 1 "${processes[telearm]}" 'vcan0' -- \
    "$TELEARM" run $rig/plan.toml --socket $rig/other.sock
check "a second telearm: the first follows on" 0 -- reaches 1 '"mode":"active"'

check "a foreign command on the bus" 0 -- cansend vcan0 155#0000000000000000
check "a foreign command is a fault with its identifier" 0 -- reaches 3 "$(faulted 'foreign_command,code0x155')"
sleep 1.6
engages "a foreign command"

ip link set vcan0 down
check "interface down is a fault with a name" 0 -- reaches 3 "$(faulted bus_down)"
ip link set vcan0 up
check "interface up again: nothing moves by itself" 0 -- stays 1 "$(faulted bus_down)"
engages "interface down and up"
end_record vcan0
check "so far: whole targets within the limits, no stop of the arm's own, no power off" 0 -- \
    bus_log $rig/faults.candump --more-than 300 --foreign 155 --restart 2

ip link del vcan0
check "interface deleted is a fault with a name" 0 -- reaches 3 "$(faulted bus_gone)"
ip link add vcan0 type vcan && ip link set vcan0 mtu 72 up
record vcan0 $rig/faults.candump
sleep 1.5
check "interface created anew: nothing moves by itself" 0 -- stays 1 "$(faulted bus_gone)"
engages "interface deleted and created anew"

check "a bus-off error frame" 0 -- can_error vcan0 0x40
check "bus-off is a fault with a name, and counted" 0 -- reaches 3 "$(faulted bus_off).*\"bus_errors\":1,"
sleep 0.8
engages "bus-off"

# The whole process is away for 3 s while the hand goes on.
kill -STOP "${processes[telearm]}"
sleep 3
kill -CONT "${processes[telearm]}"
check "stopped for 3 s: disengaged, and not taken over" 0 '"taken_over":false' -- reaches 3 '"mode":"ready"'
check "stopped for 3 s: the log says so" 0 'away' -- cat $rig/telearm.log
sleep 0.5
end_record vcan0
check "stopped for 3 s: then it brakes, and no more" 0 -- bus_log $rig/faults.candump --more-than 200 --restart 12 --pause 2.5 --travel-after 12 --rest 20
record vcan0 $rig/faults.candump
engages "stopped for 3 s"

end telearm KILL
it "killed: by the signal" 0 -- test "$ended" -eq 137
end_record vcan0
check "killed while it follows: the last frame is a target one step after the one before, no stop, no power off" 0 -- \
    bus_log $rig/faults.candump --more-than 50 --ends-with-target
end_all

# Emulated controllers, with a queue of their own and a driver that can be removed.
for bus in can0 can1; do scripts/can_activate $bus >/dev/null 2>&1; done
sed 's/engage = "pinch_hold"/engage = "command"/' rt-config/quest-piper.toml >$rig/plan.toml
record can0 $rig/faults.candump
arm can1
hand hand 8888 reach
daemon $rig/plan.toml
check "can0: up" 0 -- reaches 10 '"phase":"up"'
engages "can0"
tc qdisc replace dev can0 root tbf rate 32kbit burst 16b limit 160b
check "queue full: commands wait for room, and are counted" 0 -- reaches 3 '"busy":[1-9]'
sleep 1
check "queue full: the process lives and says what is wrong" 0 '"slowed":"bus"|bus_not_sending' -- status
tc qdisc replace dev can0 root pfifo limit 16
sleep 1.2
engages "queue full"

device=$(readlink -f /sys/class/net/can0/device)
echo 1 >"$device/remove"
check "adapter unplugged is a fault with a name" 0 -- reaches 3 "$(faulted bus_gone)"
end dump-can0 INT
echo 1 >/sys/bus/pci/rescan
sleep 0.5
check "adapter plugged in again: can_activate brings it up" 0 'ERROR-ACTIVE' -- scripts/can_activate can0
sleep 2.5
check "adapter plugged in again: nothing moves by itself" 0 -- stays 1 "$(faulted bus_gone)"
engages "adapter unplugged and plugged in again"
check "quit" 0 -- telearm quit
wait "${processes[telearm]}" && ended=0 || ended=$?
it "the exit status is 0" 0 -- test "$ended" -eq 0
check "can0 until it was unplugged: whole targets within the limits" 0 -- bus_log $rig/dump-can0.log --more-than 100 --restart 12
file_ends faults
