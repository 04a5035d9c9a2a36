#!/bin/bash
# commands.sh: reads arguments of lapse, a command in each line, and prints a checksum of its two outputs and of the file `out`, and its
# exit status if it is not 0.
while read -r line; do
    rm -rf out
    eval "lapse $line" >text 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] && shows= || shows="status $status "
    { cat text; [ ! -f out ] || cat out; } | sed 's/"seconds": [0-9.e-]*//; s/"now": [0-9]*//; s/[0-9.]* MB.s//; s/\(in\|after\) [0-9.]* s//; s/[0-9.kM]* events.s, [0-9.]* s//; s/"commit": "[^"]*"//; s/^commit .*/commit/; s/\([> ]\)[0-9a-f]\{12\}+*\([< ]\)/\1C\2/g; s/^\(made by *\).*/\1/' | cksum | sed "s|  *[0-9]*\$| $shows|" | tr -d '\n'
    echo "$line"
done
