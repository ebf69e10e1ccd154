#!/bin/sh
# What the tests of SSH and Proxmox hosts need of the system: an SSH server, login shells and a /bin/sh of other kinds, sudo,
# and tmux, the terminal of one of them.
# As root on Debian it is installed; elsewhere those tests are skipped, and here is why.
missing=
PATH="$PATH:/usr/sbin:/sbin"
for word in sshd:openssh-server fish:fish tcsh:tcsh zsh:zsh busybox:busybox sudo:sudo tmux:tmux; do
    command -v "${word%:*}" >/dev/null || missing="$missing ${word#*:}"
done
[ "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # The tests start servers of their own: nothing shall begin to listen on this machine because of them.
    policy=/usr/sbin/policy-rc.d
    if ! [ -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "*** SSH AND PROXMOX HOSTS ARE NOT FULLY TESTED HERE: install$missing, and run the tests as root ***" >&2
exit 0
