date -u -d '2024-02-28 +2 days' +%A,%d.%m.%Y
date -u -d @86400 +%s%z
echo "scale=3; 22/7" | bc
printf '%s\n' 10 9 100 1 | sort -n | tr '\n' ' '; echo
numfmt --to=iec 1048576; expr 7 \* 6; factor 84
printf 'b\na\nb\n' | sort -u | paste -sd, -
echo "The Quick" | tr '[:upper:]' '[:lower:]' | fold -w 4
comm -12 <(printf '1\n2\n3\n') <(printf '2\n3\n4\n') | column -t
join <(printf '1 a\n2 b\n') <(printf '1 x\n2 y\n')
timeout 5 sleep 0 && echo slept; yes | head -n 2; shuf -i 1-5 | sort | tail -1
