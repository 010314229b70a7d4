# shellcheck shell=bash
# What the tests of the whole program share: arms, hands, the daemon and a recorder of the bus, each a process of its own.

rig=/tmp/rig
socket=$rig/telearm.sock
mkdir -p $rig
export STATE_DIRECTORY=$rig RUST_LOG=${RUST_LOG:-info}
for operator in right-hand left-hand; do # as `telearm check --frame` leaves it
    printf '[[verified]]\noperator = "%s"\ndevice = "rctp"\nframe = "openxr_rh"\n' $operator
done >$rig/verified_frames.toml

# Loads every program before anything is timed. Where the clock counts instructions, it runs ahead while the guest waits for a file of
# the host's: a process that is loaded in the middle of a run would cost the others seconds.
warm_up() {
    local program
    for program in "$TELEARM" bash candump cansend python3 ip tc taskset chrt setpriv sleep mv sed tail cat kill cyclictest cangen; do
        program=$(command -v "$program") && cat "$program" "$(readlink -f "$program")" >/dev/null
    done
    "$TELEARM" --version && taskset -c 0 chrt -o 0 true && sleep 0.01 && ip link show vcan0 && tc qdisc show dev vcan0 && bus_log --help
} >/dev/null 2>&1

declare -A processes=() # name -> process id

# start NAME COMMAND...: in the background, its output in $rig/NAME.log.
start() {
    local name=$1
    shift
    "$@" >"$rig/$name.log" 2>&1 </dev/null &
    processes[$name]=$!
}

# end NAME [SIGNAL]: ends it and waits; its exit status in $ended.
end() {
    local pid=${processes[$1]:-}
    [ -n "$pid" ] || return 0
    kill "-${2:-TERM}" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    ended=$?
    unset "processes[$1]"
}

end_all() { local name; for name in "${!processes[@]}"; do end "$name" KILL; done; }

# arm INTERFACE: an emulated Piper, its own process.  hand NAME PORT SCRIPT [OPTION...]: an emulated headset.
arm() { start "arm-$1" "$TELEARM" emulate piper --can "$1"; }
hand() { start "$1" "$TELEARM" emulate rctp --to "127.0.0.1:$2" --script "${@:3}"; }

# record INTERFACE FILE: everything that is commanded there, with room for a recorder that falls behind.
record() { start "dump-$1" candump -D -L -x -r 33554432 "$1,150:7F0,470:7F8,4AF:7FF" && recorded=$2; }
# end_record INTERFACE: the record goes to the file named at its start.
end_record() { sleep 0.3 && end "dump-$1" INT && mv "$rig/dump-$1.log" "$recorded"; }

# daemon PLAN [COMMAND...]: telearm, started through COMMAND if given. On one core by default: a busy host then delays control and
# watchdog alike, which the watchdog tells from a control thread that hangs; on two emulated cores it cannot.
one_core=(taskset -c 1)
[ "$(nproc)" -gt 1 ] || one_core=()
daemon() {
    local plan=$1
    shift
    [ $# -gt 0 ] || set -- "${one_core[@]}"
    start telearm "$@" "$TELEARM" run "$plan" --socket $socket
}
telearm() { "$TELEARM" "$@" --socket $socket; }

# status: JSON on one line, without blanks.
status() {
    local json
    json=$(telearm status --json 2>&1)
    echo "${json//[$'\n ']/}"
}

# reaches SECONDS PATTERN...: within that time the status matches all patterns at once; prints the last one.
reaches() {
    local until=$((SECONDS + $1)) now pattern
    shift
    while :; do
        now=$(status)
        for pattern; do [[ $now =~ $pattern ]] || { pattern=; break; }; done
        [ -z "$pattern" ] || break
        if [ $SECONDS -ge $until ]; then
            echo "$now"
            tail -n 20 $rig/telearm.log
            return 1
        fi
        sleep 0.1
    done
    echo "$now"
}

# stays SECONDS PATTERN: every status in that time matches.
stays() {
    local until=$((SECONDS + $1)) now
    while [ $SECONDS -lt $until ]; do
        now=$(status)
        [[ $now =~ $2 ]] || { echo "$now"; return 1; }
        sleep 0.1
    done
}

# value KEY: the first plain value of this key in the status.
value() { [[ $(status) =~ \"$1\":\"?([^,\"\}]*) ]] && echo "${BASH_REMATCH[1]}"; }

bus_log() { python3 -I -S "$HERE/bus_log.py" "$@"; }

# check ...: as `it`, and says how long the command took.
check() {
    local began=${EPOCHREALTIME/./} name=$1 took
    it "$@"
    took=$((${EPOCHREALTIME/./} - began))
    while [ "$1" != -- ]; do shift; done
    shift
    printf '    %d.%03d s  $ %s\n' $((took / 1000000)) $((took / 1000 % 1000)) "$*"
}

# file_begins / file_ends NAME: the sums of one file.
file_begins() {
    [ -n "${warm:-}" ] || warm_up
    warm=yes
    passed_before=$passed failed_before=$failed began_at=$SECONDS
}
file_ends() {
    end_all
    echo "$1: $((passed - passed_before)) passed, $((failed - failed_before)) failed ($((SECONDS - began_at)) s)"
}
