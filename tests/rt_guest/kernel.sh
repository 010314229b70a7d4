# shellcheck shell=bash
# The guest is what the other tests take it for.

it "the kernel is PREEMPT_RT" 0 'PREEMPT_RT' -- uname -v
it "virtual buses are up with the CAN FD mtu" 0 'vcan3.*UP.* mtu 72' -- ip link show vcan3
it "real-time priorities may be asked for" 0 '^99$' -- bash -c 'ulimit -r'

candump -L vcan0 >/tmp/kernel.log &
dump=$!
sleep 1
it "a frame can be sent on a virtual bus" 0 -- cansend vcan0 123#DEADBEEF
sleep 0.5
kill $dump
it "a listener receives it" 0 'vcan0 123#DEADBEEF' -- cat /tmp/kernel.log
