__belljar_save() {
{ local __belljar_status=$?; builtin set +o >&@STATE@; local -; builtin set +efuvx; } 2>/dev/null
builtin printf '\0' >&@STATE@
builtin shopt -p >&@STATE@
builtin shopt -u nocasematch
local __belljar_letter __belljar_name __belljar_frame
local -a __belljar_all=() __belljar_kept=()
for __belljar_letter in a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P Q R S T U V W X Y Z _; do
builtin eval "__belljar_all+=(\"\${!$__belljar_letter@}\")"
done
for __belljar_name in "${__belljar_all[@]}"; do
case $__belljar_name in
__belljar_*|BASH|BASHOPTS|BASHPID|BASH_*|BELLJAR_CONTEXT|COMP_*|DIRSTACK|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|OPTARG|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_) continue;;
esac
if [[ ${#FUNCNAME[@]} -gt 1 ]]; then __belljar_reveal "$__belljar_name"; fi
if [[ ${__belljar_given[$__belljar_name]+given} && ${!__belljar_name} == "${__belljar_given[$__belljar_name]}" ]]; then continue; fi
__belljar_kept+=("$__belljar_name")
done
builtin printf '\0' >&@STATE@
if [[ ${#__belljar_kept[@]} -gt 0 ]]; then builtin declare -p "${__belljar_kept[@]}" >&@STATE@; fi
builtin printf '\0' >&@STATE@
builtin declare -f >&@STATE@
builtin declare -Fx >&@STATE@
builtin printf '\0' >&@STATE@
builtin alias -p >&@STATE@
builtin umask -p >&@STATE@
builtin printf 'builtin cd -- %q || builtin cd\n' "$PWD" >&@STATE@
if [[ ${OLDPWD+set} ]]; then builtin printf 'OLDPWD=%q\n' "$OLDPWD" >&@STATE@; fi
builtin printf '\0' >&@STATE@
builtin jobs -pr >&@STATE@
builtin printf '\0' >&@STATE@
builtin return "$__belljar_status"
} 2>/dev/null
__belljar_reveal() {
builtin declare -gt "$1"
for __belljar_frame in "${FUNCNAME[@]:2}"; do
local -n __belljar_seen=$1
if [[ ${__belljar_seen[*]@a} == *t* ]]; then break; fi
builtin unset -n __belljar_seen
builtin unset -v "$1"
done
builtin unset -n __belljar_seen
builtin declare -g +t "$1"
}
trap() {
local __belljar_now __belljar_hook='{ __belljar_save && :; } 2>/dev/null'
if [[ $# -eq 0 || $1 == -p || $1 == -l ]]; then
__belljar_now=$(builtin trap "$@")
__belljar_now=${__belljar_now//"$__belljar_hook"$'\n'/}
__belljar_now=${__belljar_now//$'\n'"$__belljar_hook"/}
__belljar_now=${__belljar_now#"trap -- '$__belljar_hook' EXIT"}
__belljar_now=${__belljar_now#$'\n'}
builtin printf '%s' "${__belljar_now:+$__belljar_now$'\n'}"
return
fi
builtin trap "$@" || return
__belljar_now=$(builtin trap -p EXIT)
if [[ $__belljar_now != "trap -- '$__belljar_hook"* ]]; then
builtin eval "set -- ${__belljar_now#trap -- }"
builtin trap -- "$__belljar_hook${1:+$'\n'$1$'\n'$__belljar_hook}" EXIT
fi
}
builtin trap -- '{ __belljar_save && :; } 2>/dev/null' EXIT
