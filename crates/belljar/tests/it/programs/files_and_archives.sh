mkdir -p site/{css,js} && echo 'body{}' > site/css/a.css && echo 'x()' > site/js/b.js
tar czf site.tgz site && tar tzf site.tgz | sort
rm -rf site && tar xzf site.tgz && find site -type f | sort | xargs -n1 basename
sha256sum site/css/a.css | cut -c1-16
du -a site | wc -l
stat -c '%s %F' site/js/b.js; touch -d '2024-01-02 03:04:05 UTC' site/js/b.js; date -u -r site/js/b.js +%FT%TZ
cp -r site copy; mv copy/js/b.js copy/js/c.js; ls -1 copy/js; diff -rq site copy | sort
gzip -k site/js/b.js && zcat site/js/b.js.gz; base64 <<< hello; echo aGk= | base64 -d; echo
ln -s site/css link && readlink link; chmod 640 site/css/a.css && stat -c %a site/css/a.css
