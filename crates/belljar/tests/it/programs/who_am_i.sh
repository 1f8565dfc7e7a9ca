[ -n "$(whoami)" ] && [ -n "$HOME" ] && id -u | grep -Eq '^[0-9]+$' && echo known
env | grep -c '^PATH='
command -v ls >/dev/null && echo has ls
hostname | wc -l
uname -s
echo "exit with three"; (exit 3); echo "status $?"
exit 4
