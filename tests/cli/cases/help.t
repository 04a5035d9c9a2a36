# The help of every verb, with the defaults in use.
$ lapse demo --help
$ lapse simulate --help
$ lapse import --help
$ lapse info --help
$ lapse train --help
$ lapse eval -h
$ lapse predict --help
$ lapse help --help
$ lapse train --epochs 3 --help | head -1
$ lapse help predict | head -1

# The man page is troff that groff has nothing to say against, where there is groff.
$ lapse help --man | head -5
$ lapse help --man | grep -c '^\.SS'
$ ! command -v groff >/dev/null || lapse help --man | groff -man -Tascii -ww >/dev/null
