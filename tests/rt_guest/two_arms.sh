# shellcheck shell=bash
# Two hands, two arms, two interfaces, one program: what happens to one happens to both.
# shellcheck source=tests/rt_guest/rig.sh
. "$HERE/rig.sh"
file_begins

# A packet of 45 bytes that asserts nothing but the stop bit, from a sender that owns no port.
stop_bit() { printf "RCTP$(printf '\\0%.0s' {1..40})\2" >"/dev/udp/127.0.0.1/$1"; }
both='"mode":"%s".*"mode":"%s"'
# shellcheck disable=SC2059 # the format is ours
modes() { printf "$both" "$1" "${2:-$1}"; }

sed 's/"can_right"/"vcan0"/; s/"can_left"/"vcan1"/; s/engage = .*/engage = "command"/' rt-config/quest-two-pipers.toml >$rig/plan.toml
record_both() { start dump-both candump -D -L -x -r 33554432 vcan0,150:7F0,470:7F8 vcan1,150:7F0,470:7F8; }
record_both
arm vcan0
arm vcan1
daemon $rig/plan.toml
hand right 8888 reach
hand left 8889 reach
check "both arms come up" 0 -- reaches 20 "$(modes ready).*\"phase\":\"up\".*\"phase\":\"up\""
check "both engage together" 0 -- telearm engage
check "both follow" 0 -- reaches 5 "$(modes active)"
sleep 2

stop_bit 8889
check "a stop bit at the left hand's port stops both arms" 0 '"reason":"operator_stop_bit","source":"left-hand"' -- reaches 3 "$(modes stopped)"
check "it came from a sender that does not own the port" 0 '"name":"other_sender"' -- status
sleep 0.7 # a stop bit is a level: it counts as asserted until its source has been silent for long enough
check "reset" 0 'nothing moves' -- telearm reset
check "both wait for an engage act" 0 -- reaches 3 "$(modes ready)"
check "engage again" 0 -- telearm engage
check "both follow again" 0 -- reaches 5 "$(modes active)"
sleep 1

ip link set vcan1 down
check "one bus goes down: its arm is a fault by name, the other lane no longer follows" 0 '"phase":"up".*"phase":"faulted","phase_detail":"bus_down"' -- \
    reaches 3 '"name":"right",.*"mode":"(holding|ready)".*"name":"left",.*"mode":"fault","mode_detail":"bus_down"'
check "the process lives and commands the other arm to stay" 0 -- reaches 4 '"frames_out_per_s":[5-9][0-9][0-9].*"frames_out_per_s":0'
ip link set vcan1 up
check "the bus comes back: nothing moves by itself" 0 -- stays 2 '"name":"right",.*"mode":"(holding|ready)".*"name":"left",.*"mode":"fault"'
check "reset" 0 'nothing moves' -- telearm reset
check "both are ready again" 0 -- reaches 5 "$(modes ready)"
check "quit" 0 -- telearm quit
wait "${processes[telearm]}" && ended=0 || ended=$?
it "the exit status is 0" 0 -- test "$ended" -eq 0
sleep 0.3
end dump-both INT
for bus in vcan0 vcan1; do
    check "$bus: whole targets within the limits, at rest in the end, no stop of the arm's own" 0 -- \
        bus_log $rig/dump-both.log --interface $bus --more-than 500 --travel 40 --rest 10 --restart 1 --ends-with-target
done
file_ends two_arms
