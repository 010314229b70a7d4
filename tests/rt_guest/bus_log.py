#!/usr/bin/env python3
"""Judges what telearm sent to a Piper, from a log of `candump -L -x`, and says it in figures.

usage: bus_log.py LOG [options]
Always: every target is a whole 0x152, 0x153, 0x154 in this order; no step between two targets is longer than the plan's limits
allow in one command period plus the rounding of the wire; no 0x150 (stop, reset); 0x471 only switches power on.
Exit status 1 and a line per breach otherwise.
"""

import argparse
import math
import re
import sys

LINE = re.compile(r"\(([0-9.]+)\) +(\S+) +([0-9A-F]+)#([0-9A-F]*)( [TR])?")
POSE = (0x152, 0x153, 0x154)
MODE, GRIPPER, POWER, FIRMWARE, STOP = 0x151, 0x159, 0x471, 0x4AF, 0x150
QUERIES = (0x472, 0x477)
POWER_ON = "0702000000000000"
ROUNDING_MM, ROUNDING_DEG = 0.001 * math.sqrt(3), 0.003
# A pause after which a stream may begin anew, at the measured pose: no arm moves by that.
PAUSE_S = 0.15


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("log")
    parser.add_argument("--interface", help="only frames of this one")
    parser.add_argument("--hz", type=float, default=200, help="commands per second")
    parser.add_argument("--speed", type=float, default=250, help="mm/s")
    parser.add_argument("--turn", type=float, default=90, help="deg/s")
    parser.add_argument("--targets", type=int, help="so many targets exactly")
    parser.add_argument("--more-than", type=int, default=0, help="more targets than this")
    parser.add_argument("--travel", type=float, default=0, help="the targets range over more than so many mm")
    parser.add_argument("--rest", type=int, default=0, help="the last so many targets are the same")
    parser.add_argument("--ends-with-target", action="store_true", help="the last frame belongs to a target")
    parser.add_argument("--pause", type=float, help="there is a pause of so many seconds ...")
    parser.add_argument("--travel-after", type=float, default=0, help="... and the targets range over at most so many mm from its beginning on")
    parser.add_argument("--restart", type=float, default=0, help="mm by which a stream may begin away from where the one before ended")
    parser.add_argument("--arm-stops", type=int, default=0, help="so many 0x150 01 are right")
    parser.add_argument("--foreign", help="identifier that somebody else sent on purpose")
    return parser.parse_args()


def read(path, interface, foreign):
    """(time, identifier, data) of every frame that telearm sent."""
    for line in open(path, encoding="ascii", errors="replace"):
        match = LINE.match(line)
        if not match or (interface and match[2] != interface):
            continue
        identifier = int(match[3], 16)
        if foreign and identifier == int(foreign, 16):
            continue
        ours = STOP <= identifier <= 0x15F or identifier in (*QUERIES, POWER, 0x470)
        if ours or (identifier == FIRMWARE and match[4].startswith("0100")):
            yield float(match[1]), identifier, match[4]


def words(data):
    return [int.from_bytes(bytes.fromhex(data[i:i + 8]), "big", signed=True) for i in (0, 8)]


def quaternion(rx, ry, rz):
    """Of Rz Ry Rx, degrees."""
    (cx, sx), (cy, sy), (cz, sz) = ((math.cos(math.radians(a) / 2), math.sin(math.radians(a) / 2)) for a in (rx, ry, rz))
    return (cx * cy * cz + sx * sy * sz, sx * cy * cz - cx * sy * sz, cx * sy * cz + sx * cy * sz, cx * cy * sz - sx * sy * cz)


def angle(a, b):
    """Degrees between two rotations; exact for small ones, unlike the arc cosine."""
    w = abs(sum(p * q for p, q in zip(a, b)))
    (aw, ax, ay, az), (bw, bx, by, bz) = a, b
    v = (aw * bx - ax * bw - ay * bz + az * by, aw * by + ax * bz - ay * bw - az * bx, aw * bz - ax * by + ay * bx - az * bw)
    return math.degrees(2 * math.atan2(math.hypot(*v), w))


class Judge:
    def __init__(self):
        self.breaches, self.targets, self.part, self.counts, self.arm_stops = [], [], [], {}, 0
        self.last = None

    def breach(self, time, text):
        self.breaches.append(f"{time:.6f}: {text}")

    def take(self, time, identifier, data):
        self.counts[identifier] = self.counts.get(identifier, 0) + 1
        self.last = (time, identifier)
        if identifier in POSE:
            if POSE.index(identifier) != len(self.part):
                self.breach(time, f"{identifier:03X} after {len(self.part)} frames of a target")
                self.part = []
            if POSE.index(identifier) == len(self.part):
                self.part.append((time, words(data)))
            if len(self.part) == 3:
                (begin, (x, y)), (_, (z, rx)), (_, (ry, rz)) = self.part
                self.targets.append((begin, (x / 1e3, y / 1e3, z / 1e3), quaternion(rx / 1e3, ry / 1e3, rz / 1e3)))
                self.part = []
        elif self.part:
            self.breach(time, f"{identifier:03X} inside a target")
        if identifier == STOP:
            self.arm_stops += data.startswith("01")
            if not data.startswith("0100"):
                self.breach(time, f"150#{data}: neither a stop nor anything that we send by ourselves")
        if identifier == POWER and data != POWER_ON:
            self.breach(time, f"471#{data} is not \"power on\"")
        if identifier not in (*POSE, STOP, MODE, GRIPPER, POWER, FIRMWARE, *QUERIES):
            self.breach(time, f"{identifier:03X} is nothing that a run sends")


def steps(judge, options):
    """The longest step in position and rotation within a stream; breaches of the limits on the way."""
    longest = [0.0, 0.0]
    period_ms = 1e3 / options.hz
    limit = (options.speed * period_ms / 1e3 + ROUNDING_MM, options.turn * period_ms / 1e3 + ROUNDING_DEG)
    for (t0, p0, r0), (t1, p1, r1) in zip(judge.targets, judge.targets[1:]):
        moved, turned = math.dist(p0, p1), angle(r0, r1)
        if t1 - t0 > PAUSE_S and options.restart:
            if moved > options.restart:
                judge.breach(t1, f"a stream began {moved:.3f} mm away from the one before")
            continue
        longest = [max(longest[0], moved), max(longest[1], turned)]
        if moved > limit[0] or turned > limit[1]:
            judge.breach(t1, f"a step of {moved:.3f} mm, {turned:.3f} deg; the limits are {limit[0]:.3f} and {limit[1]:.3f}")
    return longest


def spread(targets):
    """The diagonal of the box around positions, mm."""
    return math.dist(*(tuple(map(f, zip(*(p for _, p, _ in targets)))) for f in (min, max))) if targets else 0.0


def main():
    options = parse_arguments()
    judge = Judge()
    for frame in read(options.log, options.interface, options.foreign):
        judge.take(*frame)
    targets = judge.targets
    if judge.part:
        judge.breach(judge.part[0][0], "the last target is not whole")
    longest = steps(judge, options)
    frames = " ".join(f"{identifier:03X}:{count}" for identifier, count in sorted(judge.counts.items()))
    print(f"{len(targets)} targets, longest step {longest[0]:.3f} mm {longest[1]:.3f} deg, range {spread(targets):.1f} mm; frames {frames}")
    end = judge.last[0] if judge.last else 0
    if options.targets is not None and len(targets) != options.targets:
        judge.breach(end, f"{len(targets)} targets, not {options.targets}")
    if len(targets) <= options.more_than:
        judge.breach(end, f"only {len(targets)} targets")
    if spread(targets) < options.travel:
        judge.breach(end, f"a range of {spread(targets):.1f} mm only")
    if options.rest and (len(targets) < options.rest or spread(targets[-options.rest:]) > 0):
        judge.breach(end, f"not at rest: the last {options.rest} targets range over {spread(targets[-options.rest:]):.3f} mm")
    if options.ends_with_target and (not judge.last or judge.last[1] not in (POSE[2], GRIPPER)):
        judge.breach(end, f"the last frame is {judge.last}")
    if judge.arm_stops != options.arm_stops:
        judge.breach(end, f"{judge.arm_stops} stops of the arm's own, not {options.arm_stops}")
    if options.pause:
        at = next((i for i, (a, b) in enumerate(zip(targets, targets[1:])) if b[0] - a[0] >= options.pause), None)
        if at is None:
            judge.breach(end, f"no pause of {options.pause} s")
        else:
            after = spread(targets[at:])
            print(f"after a pause of {targets[at + 1][0] - targets[at][0]:.3f} s: {len(targets) - at - 1} targets, range {after:.3f} mm")
            if after > options.travel_after:
                judge.breach(targets[at][0], f"{after:.3f} mm from the pause on, more than {options.travel_after}")
    print("\n".join(judge.breaches[:20]))
    return 1 if judge.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
