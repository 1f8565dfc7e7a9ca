cat > config.ini <<'EOF'
# settings
host = localhost
port = 8080
[db]
name = test
EOF
sed -e 's/localhost/example.org/' -e '/^#/d' config.ini
sed -n '/^\[db\]/,$p' config.ini
sed -i.bak -E 's/^(port) = [0-9]+/\1 = 9090/' config.ini
diff config.ini.bak config.ini
grep -n '=' config.ini | tr -d ' ' | cut -d: -f2
echo "a.b.c" | sed 's/\./\//g; s/c$/C/' | rev
