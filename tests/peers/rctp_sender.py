#!/usr/bin/env python3
"""A headset made from the protocol's table alone, with Python's standard library: an independent peer for RCTP.

usage: rctp_sender.py HOST PORT [--seconds S] [--rate HZ] [--still] [--stop-after S] [--gesture]
Prints how many datagrams it sent. Right-handed axes, X right, Y up, Z back.
"""
import argparse
import math
import socket
import struct
import time

PACKET = struct.Struct("<4sd3f4ffB")  # 45 bytes: magic, time, position, quaternion xyzw, opening, flags
TRACKED, STOP = 1, 2
assert PACKET.size == 45


def opening(t, gesture):
    """Open, and with the gesture: closed for 0.8 s from the first second on."""
    return 0.0 if gesture and 1.0 <= t < 1.8 else 1.0


def position(t, still):
    """At rest for three seconds, then slow circles of 3 cm. A hand trembles: a pose that never changes by a bit is no hand."""
    tremor = 0.0002 * math.sin(57.0 * t)
    if still or t < 3.0:
        return (tremor, 1.2, -0.3)
    a = (t - 3.0) * 1.5
    return (0.03 * math.sin(a), 1.2 + 0.03 * (1 - math.cos(a)), -0.3)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("host")
    ap.add_argument("port", type=int)
    ap.add_argument("--seconds", type=float, default=5.0)
    ap.add_argument("--rate", type=float, default=50.0)
    ap.add_argument("--still", action="store_true")
    ap.add_argument("--gesture", action="store_true")
    ap.add_argument("--stop-after", type=float)
    args = ap.parse_args()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start = time.monotonic()
    sent = 0
    while (t := time.monotonic() - start) < args.seconds:
        flags = TRACKED | (STOP if args.stop_after is not None and t >= args.stop_after else 0)
        x, y, z = position(t, args.still)
        packet = PACKET.pack(b"RCTP", 10.0 + t, x, y, z, 0.0, 0.0, 0.0, 1.0, opening(t, args.gesture), flags)
        sock.sendto(packet, (args.host, args.port))
        sent += 1
        time.sleep(max(0.0, start + sent / args.rate - time.monotonic()))
    print(sent)


if __name__ == "__main__":
    main()
