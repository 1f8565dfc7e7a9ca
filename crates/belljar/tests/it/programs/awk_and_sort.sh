printf '%s\n' "north,widget,120.5" "south,gadget,80" "north,gadget,42.25" > sales.csv
awk -F, '{ sum[$1] += $3; n[$1]++ } END { for (r in sum) printf "%-6s %8.2f %d\n", r, sum[r], n[r] }' sales.csv | sort
cut -d, -f2 sales.csv | sort | uniq -c | sort -rn | awk '{print $2 ": " $1}'
sort -t, -k3 -n -r sales.csv | head -n 2 | nl
paste -sd+ <(cut -d, -f3 sales.csv) | bc
wc -l < sales.csv
