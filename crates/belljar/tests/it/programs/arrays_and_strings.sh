declare -A price=([apple]=3 [pear]=5)
fruits=(apple pear "red plum")
fruits+=(fig)
echo "${#fruits[@]} ${fruits[-1]} ${fruits[@]:1:2} ${!fruits[*]}"
for key in $(printf '%s\n' "${!price[@]}" | sort); do echo "$key -> ${price[$key]}"; done
path=/var/log/app/server.log.gz
echo "${path##*/} ${path%.*} ${path/log/LOG} ${path//o/0} ${#path} ${missing:-default} ${path:5:3}"
i=0; while (( i < 3 )); do (( i++ )); [[ $i == 2 ]] && continue; echo "i=$i"; done
printf '%05.2f|%-5s|%x\n' 3.14159 ab 255
IFS=: read -r a b _ <<< "x:y:z:w"; echo "$a-$b"
case "$path" in *.gz) echo compressed;; *) echo plain;; esac
[[ "2024-05-06" =~ ^([0-9]{4})-([0-9]{2}) ]] && echo "${BASH_REMATCH[2]}/${BASH_REMATCH[1]}"
seq -s, 1 2 9; echo $(( 7 / 2 )) $(( 2 ** 10 )) $(( 0xff )) {a..e} {01..03}
mapfile -t lines < <(printf 'one\ntwo\n'); echo "${lines[1]}"
