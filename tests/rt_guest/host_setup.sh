# shellcheck shell=bash
# scripts/rt_host_setup on a real kernel: what it prints is what it does, and --undo takes all of it back.

setup=scripts/rt_host_setup
ip link set can0 type can bitrate 1000000 2>/dev/null && ip link set can0 up # its interrupt thread exists from here on
can_thread=$(grep -l '^irq/.*-can' /proc/[0-9]*/comm | head -n 1 | cut -d / -f 3)
can_irq=$(sed 's,^irq/\([0-9]*\)-.*,\1,' "/proc/$can_thread/comm")

# Everything that the script may change here.
snapshot() {
    local file
    for file in /proc/irq/[0-9]*/smp_affinity_list /proc/sys/kernel/{timer_migration,numa_balancing,nmi_watchdog,sched_rt_runtime_us} \
        /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/ksm/run /etc/sysctl.d/* /etc/security/limits.d/* /etc/udev/rules.d/*; do
        [ ! -r "$file" ] || echo "$file $(cksum <"$file")"
    done
    chrt -p "$can_thread" | tail -n 1
    getent group realtime
    id -nG nobody
}
it "the CAN adapter has an interrupt thread" 0 'priority: 50' -- chrt -p "$can_thread"
original=$(snapshot)

it "a dry run says what would change" 0 'new group realtime' 'interrupt thread irq/.*can.*: SCHED_FIFO 85 \(was 50\)' 'smp_affinity_list: 0-1 -> 0' \
    'isolcpus=managed_irq,domain,1' 'changes would be made' -- $setup --dry-run --user nobody
unchanged "a dry run changes nothing" "$original" snapshot
it "it applies" 0 'changes made' '!FAILED' -- $setup --user nobody
it "the interrupt thread has its priority" 0 'SCHED_FIFO' 'priority: 85' -- chrt -p "$can_thread"
it "its interrupt is off the control core" 0 '^0$' -- cat "/proc/irq/$can_irq/smp_affinity_list"
it "the user is in the group" 0 'realtime' -- id -nG nobody
it "limits are in place" 0 '@realtime .* rtprio +95' -- cat /etc/security/limits.d/80-telearm.conf
it "a second time there is nothing to change" 0 'Nothing to change' -- $setup --user nobody
it "it undoes" 0 'everything|Everything is as it was before' '!FAILED' -- $setup --undo
unchanged "all is as it was" "$original" snapshot
it "a second time there is nothing to undo" 1 'nothing to undo' -- $setup --undo

# With the units: everything that they name is in place, and goes again.
units() { ls -d /usr/local/bin/can_activate /usr/local/bin/telearm /usr/local/sbin/rt_host_setup /etc/systemd/system/{telearm,can}@.service /etc/telearm/host.env 2>/dev/null; getent passwd telearm; }
original="$(units)$(snapshot)"
it "installs programs, units and their user" 0 'new user telearm, in group realtime' '/etc/systemd/system/can@.service: new' '!FAILED' -- $setup --units --user nobody
it "what the units start is there" 0 '^/usr/local/bin/can_activate$' '^/usr/local/bin/telearm$' '^/usr/local/sbin/rt_host_setup$' '^telearm:' -- units
it "the installed copy runs by itself, as at boot" 0 'Nothing to change' -- /usr/local/sbin/rt_host_setup --yes --runtime-only
it "the installed can_activate lists" 0 'can0 ' -- /usr/local/bin/can_activate --list
it "undoes that as well" 0 'user telearm: removed' '!FAILED' -- $setup --undo
it "all of it is gone" 0 -- test "$original" = "$(units)$(snapshot)"

it "refuses a CPU that is not there" 1 'there is no CPU 9' -- $setup --cpu 9 --yes
it "without root it says what to type" 1 'needs root: sudo' -- setpriv --reuid=65534 --regid=65534 --clear-groups $setup
