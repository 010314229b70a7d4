# shellcheck shell=bash
# telearm itself, on real SocketCAN.

# Arms on a virtual CAN bus: the same rules that `cargo test` holds them to on its own bus.
it "arms keep the conformance rules on a CAN bus" 0 'test result: ok' '![^0-9]0 passed' -- \
    env TELEARM_VCAN=vcan2 "$CONFORMANCE_ARM" --ignored --test-threads=1
