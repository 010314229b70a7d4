# shellcheck shell=bash
# telearm itself, on real SocketCAN and a real-time kernel.

# Arms on a virtual CAN bus: the same rules that `cargo test` holds them to on its own bus.
it "arms keep the conformance rules on a CAN bus" 0 'test result: ok' '![^0-9]0 passed' -- \
    env TELEARM_VCAN=vcan2 "$CONFORMANCE_ARM" --ignored --test-threads=1

# The doctor on a machine that is known. The adapters are up from here on, unless an earlier file has renamed them.
scripts/can_activate --list >/tmp/telearm.list
bus=$(awk '$5 == "kvaser_pci" { print $1; exit }' /tmp/telearm.list)
scripts/can_activate "$bus" --force >/dev/null
sed "s/^can = .*/can = \"$bus\"/" rt-config/quest-piper.toml >/tmp/telearm.toml
it "the doctor accepts a bus that can_activate set up" 0 'ok +real-time priorities' 'ok +PREEMPT_RT kernel' "ok +$bus: link +ERROR-ACTIVE, 1000000 bit/s" \
    "ok +$bus: recovery +restarts after 100 ms" "ok +$bus: queue +16 frames, pfifo" "ok +$bus: adapter +kvaser_pci" 'ok +UDP port' '^Ready' -- \
    "$TELEARM" doctor /tmp/telearm.toml --seconds 0
ip link set "$bus" txqueuelen 10
it "the doctor sees a short queue" 0 "bad +$bus: queue +10 frames" 'fix: sudo scripts/can_activate' -- "$TELEARM" doctor /tmp/telearm.toml --seconds 0
scripts/can_activate "$bus" 500000 >/dev/null
it "the doctor refuses a bus at another bitrate" 1 "FAIL +$bus: link +.*500000 bit/s.*the arm needs 1000000" "fix: sudo scripts/can_activate $bus 1000000" '^Not ready: 1 failed' -- \
    "$TELEARM" doctor /tmp/telearm.toml --seconds 0
ip link set "$bus" down
it "the doctor refuses a bus that is down" 1 "FAIL +$bus: link +down" -- "$TELEARM" doctor /tmp/telearm.toml --seconds 0
it "the doctor refuses a bus that is not there" 1 'FAIL +can0815: link +there is no such interface' -- \
    "$TELEARM" doctor <(sed 's/^can = .*/can = "can0815"/' rt-config/quest-piper.toml) --seconds 0
scripts/can_activate "$bus" >/dev/null
# What it measures says nothing here, where the clock is the host's: latency.sh judges it in virtual time.
# shellcheck disable=SC2016 # the inner shell expands
it "the doctor's live test has all it asks for" 0 'live test at 200 Hz +core [0-9]+: 1 in 1000' '!The live test ran without' -- \
    sh -c '"$1" doctor /tmp/telearm.toml --seconds 2; [ $? -le 1 ]' sh "$TELEARM"
