# shellcheck shell=bash
# scripts/can_activate against real network devices: two emulated adapters on one wire, down and without a bitrate.

can_activate=scripts/can_activate
bus0=$(basename "$(readlink -f /sys/class/net/can0/device)")
bus1=$(basename "$(readlink -f /sys/class/net/can1/device)")

# What an interface is, in one line, asked of the kernel and not of the script.
state() { ip -d -j link show dev "$1" | tr -d '\n '; }
# How often the link of an interface went up or down.
link_changes() { cat "/sys/class/net/$1/carrier_changes"; }

it "lists both adapters with their bus" 0 "can0 .*DOWN .*kvaser_pci +$bus0" "can1 .*DOWN .*kvaser_pci +$bus1" 'vcan0 +vcan' -- $can_activate --list

# It never guesses.
it "refuses a name that is not there, and lists what is" 1 'no interface can7' "can0 .*$bus0" "can1 .*$bus1" -- $can_activate can7
it "refuses an interface that is no CAN interface" 1 'lo is not a CAN interface' 'can0 ' -- $can_activate lo
it "refuses a bus with nothing on it" 1 'no CAN adapter at 3-1:1.0' "$bus0" -- $can_activate arm 1000000 3-1:1.0
it "refuses a serial number that is not there" 1 'no CAN adapter at serial:42' -- $can_activate arm 1000000 serial:42
it "refuses a name that another adapter has" 1 "can1 is taken \(bus $bus1\) and the adapter at $bus0 is can0" -- $can_activate can1 1000000 "$bus0"
it "refuses what is no bitrate" 2 'bitrate "1M"' -- $can_activate can0 1M
it "says usage without an interface" 2 'which interface' -- $can_activate
it "none of this changed anything" 0 '"state":"STOPPED"' '!"bitrate":1000000' '!"UP"' -- state can0

# A dry run prints what it would do.
it "a dry run prints the commands" 0 '^ip link set dev can0 type can bitrate 1000000 restart-ms 100 berr-reporting on$' '^ip link set dev can0 up$' -- $can_activate --dry-run can0
it "a dry run changes nothing" 0 '!"UP"' '!"bitrate":1000000' -- state can0

# Up, from nothing.
it "brings a new adapter up at 1 Mbit/s" 0 '^can0: ERROR-ACTIVE, 1000000 bit/s, restart 100 ms, queue 16 \(pfifo\), driver kvaser_pci' -- $can_activate can0
it "the kernel agrees" 0 '"UP"' '"bitrate":1000000' '"restart_ms":100' 'BERR-REPORTING"\],"ctrlmode_supp' '"txqlen":16' '"qdisc":"pfifo"' -- state can0

# Again: nothing to do, and nothing is done.
changes=$(link_changes can0)
it "a second time there is nothing to do" 0 'already up at 1000000 bit/s; nothing to do' -- $can_activate can0
unchanged "and the link stays up meanwhile" "$changes" link_changes can0
ip link set can0 txqueuelen 10
it "a queue of another length is set" 0 'queue 16' '!taking can0 down' -- $can_activate can0
tc qdisc replace dev can0 root fq_codel 2>/dev/null || tc qdisc replace dev can0 root tbf rate 1mbit burst 16b limit 160b
it "another queue discipline is replaced" 0 'queue 16 \(pfifo\)' '!taking can0 down' -- $can_activate can0
unchanged "both without taking the link down" "$changes" link_changes can0

# Up with other settings.
it "another bitrate is set when nobody listens" 0 'taking can0 down: bitrate is 1000000, not 500000' '500000 bit/s' -- $can_activate can0 500000
candump can0 >/dev/null 2>&1 &
dump=$!
sleep 1
changes=$(link_changes can0)
it "another bitrate is refused while somebody listens" 1 'can0 is up and [0-9]+ socket\(s\) listen on it' 'bitrate is 500000, not 1000000' -- $can_activate can0
it "the old one stays" 0 '"bitrate":500000' '"UP"' -- state can0
unchanged "and the link stays up" "$changes" link_changes can0
it "--force does it" 0 'can0: ERROR-ACTIVE, 1000000 bit/s' -- $can_activate can0 --force
it "which does take the link down: the count tells" 0 -- test "$(link_changes can0)" -gt "$changes"
kill $dump 2>/dev/null
for mode in listen-only loopback one-shot; do
    ip link set can0 down && ip link set can0 type can $mode on && ip link set can0 up
    it "$mode that somebody left on is put off" 0 "taking can0 down: ${mode^^} is on" 'ERROR-ACTIVE' -- $can_activate can0
    it "$mode is off" 0 "!ctrlmode\":\[[^]]*${mode^^}.*ctrlmode_supported" -- state can0
done

# By bus, with a name of its own.
it "finds an adapter by its bus and renames it" 0 '^can_left: ERROR-ACTIVE, 1000000 bit/s' "bus $bus0" -- $can_activate can_left 1000000 "$bus0"
it "a second time by bus there is nothing to do" 0 'can_left is already up' -- $can_activate can_left 1000000 "$bus0"
it "brings the other one up" 0 '^can1: ERROR-ACTIVE' "bus $bus1" -- $can_activate can1 1000000 "$bus1"

candump -L can1 >/tmp/can_activate.log &
dump=$!
sleep 1
it "a frame can be sent on one adapter" 0 -- cansend can_left 150#0102030405060708
sleep 0.5
kill $dump
it "the other adapter receives it" 0 'can1 150#0102030405060708' -- cat /tmp/can_activate.log

# Unplugged and plugged in again it is down and without a bitrate, as at the first time.
device=$(readlink -f /sys/class/net/can1/device)
echo 1 >"$device/remove"
sleep 0.5
it "an unplugged adapter is refused" 1 'no interface can1' 'can_left ' -- $can_activate can1
echo 1 >/sys/bus/pci/rescan
sleep 1
name=$(ls "$device/net")
it "plugged in again it comes up" 0 "^can_right: ERROR-ACTIVE, 1000000 bit/s.* bus $bus1" -- $can_activate can_right 1000000 "$bus1"
it "from the name that the kernel gave it" 0 '^can' -- echo "$name"

# Rights, virtual interfaces.
it "without rights it says what to type" 1 'needs root: sudo scripts/can_activate can_left 250000' -- \
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all $can_activate can_left 250000
it "without rights it may still see that all is well" 0 'nothing to do' -- \
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all $can_activate can_left
ip link set vcan1 down
it "a virtual interface is brought up, with a note" 0 'vcan1 is virtual' '^vcan1: UP' -- $can_activate vcan1
it "a virtual interface that is up is left alone" 0 'already up; nothing to do' -- $can_activate vcan1
it "a virtual interface that is missing: how to make it" 1 'ip link add vcan9 type vcan' -- $can_activate vcan9

# USB adapters, as /sys shows them: this machine has none, so the tree is made up, and `ip` answers from it.
usb=/tmp/usb
device=$usb/sys/devices/pci0000:00/0000:00:14.0/usb1
mkdir -p $usb/sys/class/net $usb/proc/net/can $usb/bin $usb/sys/bus/usb/drivers/gs_usb
# adapter PATH SERIAL INTERFACE CHANNEL
adapter() {
    mkdir -p "$device/$1/$1:1.0/net/$3"
    echo "$2" >"$device/$1/serial"
    ln -sfn $usb/sys/bus/usb/drivers/gs_usb "$device/$1/$1:1.0/driver"
    echo 280 >"$device/$1/$1:1.0/net/$3/type"
    echo "0x$4" >"$device/$1/$1:1.0/net/$3/dev_id"
    ln -sfn "$device/$1/$1:1.0" "$device/$1/$1:1.0/net/$3/device"
    ln -sfn "$device/$1/$1:1.0/net/$3" $usb/sys/class/net/"$3"
}
adapter 1-2 AAA111 can0 0
adapter 1-3.1 BBB222 can1 0
adapter 1-3.1 BBB222 can2 1
cat >$usb/bin/ip <<'IP'
#!/bin/sh
echo '[{"ifname":"x","flags":["NOARP"],"mtu":16,"qdisc":"noop","txqlen":10,"linkinfo":{"info_kind":"can","info_data":{"state":"STOPPED","restart_ms":0}}}]'
IP
chmod +x $usb/bin/ip
usb_can_activate() { env CAN_ACTIVATE_ROOT=$usb PATH="$usb/bin:$PATH" $can_activate "$@"; }
it "USB: lists path and serial, and the channel where it matters" 0 'can0 .*gs_usb +1-2:1.0 +AAA111' 'can1 .* 1-3.1:1.0#0 +BBB222' 'can2 .* 1-3.1:1.0#1 +BBB222' -- usb_can_activate --list
it "USB: chooses by path" 0 '^ip link set dev can0 name can_left$' -- usb_can_activate --dry-run can_left 1000000 1-2:1.0
it "USB: chooses by the path of the whole adapter" 0 '^ip link set dev can0 type can bitrate 1000000' -- usb_can_activate --dry-run can0 1000000 1-2
it "USB: a path is not a prefix" 1 'no CAN adapter at 1-3' -- usb_can_activate --dry-run arm 1000000 1-3
it "USB: refuses two channels" 1 '1-3.1:1.0 is not one interface but 2 \(can1 can2\)' '1-3.1:1.0#1' -- usb_can_activate --dry-run arm 1000000 1-3.1:1.0
it "USB: chooses a channel" 0 '^ip link set dev can2 name arm$' -- usb_can_activate --dry-run arm 1000000 1-3.1:1.0#1
it "USB: chooses by serial number" 0 '^ip link set dev can0 name arm$' -- usb_can_activate --dry-run arm 1000000 serial:AAA111
it "USB: chooses a channel by serial number" 0 '^ip link set dev can1 name arm$' -- usb_can_activate --dry-run arm 1000000 serial:BBB222#0
rm -rf $usb/sys/class/net/*
mkdir -p $usb/sys/bus/usb/devices/1-2
echo 1d50 >$usb/sys/bus/usb/devices/1-2/idVendor
echo 606f >$usb/sys/bus/usb/devices/1-2/idProduct
echo AAA111 >$usb/sys/bus/usb/devices/1-2/serial
it "USB: an adapter without a driver is recognised" 1 'plugged in at USB 1-2 \(serial AAA111\): no driver took it; sudo modprobe gs_usb' -- usb_can_activate can0
rm -rf $usb/sys/bus/usb/devices/1-2
it "USB: nothing plugged in" 1 'no adapter that the gs_usb driver knows is plugged in' -- usb_can_activate can0
rm -rf $usb/proc/net/can
it "a kernel without CAN is recognised" 1 'this kernel \(.*\) has no CAN support' -- usb_can_activate can0
