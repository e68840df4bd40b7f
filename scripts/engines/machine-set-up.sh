#!/bin/sh
# Makes the root file system $1 that of a machine with systemd and an ssh server. Its user `tester` can run
# engines without root: its control groups are delegated, and its services run without a session. root has the
# same key.
set -e
root=$1
inside() { chroot "$root" "$@"; }
file() { mkdir -p "$root${1%/*}" && cat > "$root$1"; }

inside useradd --create-home --uid 1000 --shell /bin/bash tester
inside install -d -m 700 -o tester -g tester /home/tester/.ssh
inside ssh-keygen -q -t ed25519 -N '' -f /home/tester/.ssh/id
inside install -m 644 /home/tester/.ssh/id.pub /home/tester/.ssh/authorized_keys
inside install -D -m 600 /home/tester/.ssh/id.pub /root/.ssh/authorized_keys

file /var/lib/systemd/linger/tester < /dev/null
file /etc/systemd/system/user@.service.d/delegate.conf << 'END'
[Service]
Delegate=cpu cpuset io memory pids
END

# As Docker's own tool for this writes it.
file /etc/systemd/user/docker.service << 'END'
[Service]
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/usr/share/docker.io/contrib/dockerd-rootless.sh
Type=notify
NotifyAccess=all
TimeoutStartSec=infinity
KillMode=mixed
Delegate=yes
END
inside systemctl --quiet disable docker.service docker.socket containerd.service

# The kernel has no address translation for nftables. Its modules are those that a user cannot load.
inside ln -s uml/modules /usr/lib/modules
inside update-alternatives --quiet --set iptables /usr/sbin/iptables-legacy
inside update-alternatives --quiet --set ip6tables /usr/sbin/ip6tables-legacy
file /etc/containers/containers.conf << 'END'
[network]
firewall_driver = "iptables"
END
file /etc/modules-load.d/engines.conf << 'END'
br_netfilter
fuse
ip6table_filter
ip6table_nat
iptable_filter
iptable_nat
overlay
tun
veth
xt_MASQUERADE
xt_addrtype
xt_comment
xt_conntrack
END

# The address is an argument of the kernel.
inside systemctl --quiet enable systemd-networkd.service systemd-network-generator.service
inside systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  fstrim.timer netavark-dhcp-proxy.socket podman-auto-update.timer systemd-networkd-wait-online.service
echo machine > "$root/etc/hostname"
echo '127.0.0.1 localhost machine' > "$root/etc/hosts"
