# No input, and no file of another program, is lost; no closed descriptor, link, pipe or truncated file does harm.
$ lapse import events.csv -o d.lapse >/dev/null; cp d.lapse whole.lapse; cp events.csv whole.csv
$ cat >small <<<'--epochs 1 --dims 4 --context 8 --blocks 1 --threads 1 --no-eval'
$ lapse train d.lapse -o m.st $(cat small) 2>/dev/null | grep -c saved; cp m.st whole.st
| 1

# A checkpoint replaces no other file. The file is named by --checkpoint, or is MODEL.checkpoint.
$ lapse train d.lapse -o new.st --checkpoint d.lapse $(cat small); cmp d.lapse whole.lapse; ls new.st
! lapse: --checkpoint d.lapse would overwrite DATA d.lapse
! lapse: see `lapse train --help`
! ls: cannot access 'new.st': No such file or directory
= 2
$ cp d.lapse other.lapse; lapse train d.lapse -o new.st --checkpoint other.lapse --checkpoint-every 0s $(cat small); cmp other.lapse whole.lapse; ls new.st
! lapse: other.lapse: this file is not a checkpoint, and a checkpoint would overwrite it; set another --checkpoint FILE
! ls: cannot access 'new.st': No such file or directory
= 2
$ lapse train d.lapse -o new.st --checkpoint other.lapse --resume $(cat small) 2>&1 | grep '^lapse:'; cmp other.lapse whole.lapse
| lapse: other.lapse: this is not a whole Lapse model: it does not begin with a safetensors header
$ lapse train d.lapse -o new.st --model majority --checkpoint other.lapse --no-eval 2>/dev/null | grep -c saved; cmp other.lapse whole.lapse
| 1
$ lapse train d.lapse -o new.st --checkpoint m.st $(cat small); cmp m.st whole.st
! lapse: m.st: this file is not a checkpoint, and a checkpoint would overwrite it; set another --checkpoint FILE
$ lapse train d.lapse -o both.st --checkpoint ./both.st $(cat small); ls both.st
! lapse: --output both.st and --checkpoint ./both.st are the same file
! lapse: see `lapse train --help`
! ls: cannot access 'both.st': No such file or directory
= 2
$ echo notes >m2.st.checkpoint; lapse train d.lapse -o m2.st $(cat small); cat m2.st.checkpoint
| notes
! lapse: m2.st.checkpoint: this file is not a checkpoint, and a checkpoint would overwrite it; set another --checkpoint FILE
$ mkfifo pipe; lapse train d.lapse -o m3.st --checkpoint pipe $(cat small)
! lapse: pipe: this is not a regular file
= 1
$ ln -s nowhere dangling; lapse train d.lapse -o m3.st --checkpoint dangling $(cat small)
! lapse: dangling: cannot open: No such file or directory
= 1

# A checkpoint of an earlier run is replaced, with a note; it stays if this run saves none.
$ lapse train d.lapse -o s.st --epochs 1000000 --patience 1000000 --dims 4 --threads 1 2>log & \
  for i in $(seq 600); do grep -qs 'epoch 1/' log && break; sleep 0.05; done; kill -INT $!; wait $!; cp s.st.checkpoint kept; ls s.st*
| s.st
| s.st.checkpoint
$ lapse train d.lapse -o s.st $(cat small) 2>&1 >/dev/null | grep '^lapse:'; cmp s.st.checkpoint kept
| lapse: s.st.checkpoint is the checkpoint of an earlier run; this run starts anew (--resume continues that one)
$ lapse train d.lapse -o s.st --checkpoint-every 0s $(cat small) 2>&1 >/dev/null | grep '^lapse:'; ls s.st*
| lapse: s.st.checkpoint is the checkpoint of an earlier run; this run starts anew (--resume continues that one)
| s.st

# An output that is an input under another name, or another output.
$ lapse train d.lapse -o d.lapse
! lapse: --output d.lapse would overwrite DATA d.lapse
! lapse: see `lapse train --help`
= 2
$ lapse train d.lapse -o ./d.lapse
! lapse: --output ./d.lapse would overwrite DATA d.lapse
! lapse: see `lapse train --help`
= 2
$ ln -s d.lapse link.lapse; lapse train d.lapse -o link.lapse
! lapse: --output link.lapse would overwrite DATA d.lapse
! lapse: see `lapse train --help`
= 2
$ ln d.lapse hard.lapse; lapse train hard.lapse -o d.lapse
! lapse: --output d.lapse would overwrite DATA hard.lapse
! lapse: see `lapse train --help`
= 2
$ lapse train link.lapse -o d.lapse; cmp d.lapse whole.lapse
! lapse: --output d.lapse would overwrite DATA link.lapse
! lapse: see `lapse train --help`
$ lapse import events.csv -o events.csv
! lapse: --output events.csv would overwrite INPUT events.csv
! lapse: see `lapse import --help`
= 2
$ lapse import events.csv -o ./events.csv; cmp events.csv whole.csv
! lapse: --output ./events.csv would overwrite INPUT events.csv
! lapse: see `lapse import --help`
$ lapse import - -o out.lapse <events.csv | head -1; lapse import events.csv -o - 2>/dev/null | cmp - d.lapse
| read       96 rows, 1.9 kB from standard input
$ lapse import - -o events.csv <events.csv; cmp events.csv whole.csv
! lapse: --output events.csv would overwrite INPUT /dev/stdin
! lapse: see `lapse import --help`
$ cat events.csv | lapse import - -o out.lapse | head -1
| read       96 rows, 1.9 kB from standard input
$ lapse kernel m.st --svg m.st
! lapse: --svg m.st would overwrite MODEL m.st
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.st --svg ./m.st; cmp m.st whole.st
! lapse: --svg ./m.st would overwrite MODEL m.st
! lapse: see `lapse kernel --help`
$ lapse pretrain d.lapse -o ../files/d.lapse
! lapse: --output ../files/d.lapse would overwrite DATA d.lapse
! lapse: see `lapse pretrain --help`
= 2
$ lapse pretrain d.lapse -o v.st --dims 4 --epochs 1 >/dev/null 2>&1; cp v.st whole_v.st
$ lapse pretrain d.lapse -o ./events.csv --catalogue events.csv
! lapse: --output ./events.csv would overwrite --catalogue events.csv
! lapse: see `lapse pretrain --help`
= 2
$ lapse train d.lapse --task recommend --item-vectors v.st -o v.st
! lapse: --output v.st would overwrite --item-vectors v.st
! lapse: see `lapse train --help`
= 2
$ lapse train d.lapse --task recommend --item-vectors v.st -o m4.st --checkpoint $PWD/v.st; cmp v.st whole_v.st
! lapse: --checkpoint WORK/files/v.st would overwrite --item-vectors v.st
! lapse: see `lapse train --help`
$ lapse simulate -o x --law ./x
! lapse: --output x and --law ./x are the same file
! lapse: see `lapse simulate --help`
= 2
$ lapse simulate -o x --law y --catalogue $PWD/y; ls x y
! lapse: --law y and --catalogue WORK/files/y are the same file
! lapse: see `lapse simulate --help`
! ls: cannot access 'x': No such file or directory
! ls: cannot access 'y': No such file or directory
= 2
$ lapse simulate -o ./x --law x
! lapse: --output ./x and --law x are the same file
! lapse: see `lapse simulate --help`
= 2
$ lapse simulate -o ./x --law ././x
! lapse: --output ./x and --law ././x are the same file
! lapse: see `lapse simulate --help`
= 2
$ mkdir other; lapse simulate --sequences 2 -o x --law other/x; lapse simulate --sequences 2 -o ./x --law yx; ls x yx other; rm -r x yx other
| wrote      81 events to x, their true probabilities to other/x in N s
| wrote      81 events to ./x, their true probabilities to yx in N s
| x
| yx
|
| other:
| x
$ lapse simulate -o - --law -
! lapse: --output - and --law - are the same file
! lapse: see `lapse simulate --help`
= 2
$ lapse simulate -o /dev/stdout --law /dev/null --sequences 2 | head -1; lapse simulate -o x --law /dev/null --sequences 2 | wc -l; rm x
| user,time,item,action,category
| 1

# A link is kept and its target replaced; a link to nothing is refused.
$ echo old >target; ln -s target to_target; lapse import events.csv -o to_target >/dev/null; readlink to_target; cmp target whole.lapse
| target
$ lapse import events.csv -o dangling; readlink dangling; ls nowhere
| nowhere
! lapse: dangling: cannot write: this is a symbolic link to a file that does not exist
! ls: cannot access 'nowhere': No such file or directory
= 2

# Whatever lies at OUT.tmp is not touched.
$ echo precious >victim; ln -s victim a.tmp; lapse import events.csv -o a >/dev/null; cat victim; readlink a.tmp; cmp a whole.lapse; ls a*
| precious
| victim
| a
| a.tmp
$ echo mine >b.tmp; lapse import events.csv -o b >/dev/null; cat b.tmp; ls b b.*
| mine
| b
| b.tmp
$ mkfifo c.tmp; timeout 10 lapse import events.csv -o c >/dev/null; ls c c.*
| c
| c.tmp
$ name=$(printf 'n%.0s' $(seq 255)); lapse import events.csv -o $name >/dev/null; cmp $name whole.lapse; rm $name

# Closed standard descriptors.
$ lapse import events.csv -o closed.lapse >&-; cmp closed.lapse whole.lapse
$ lapse import events.csv -o closed.lapse <&- >&- 2>&-; cmp closed.lapse whole.lapse
$ lapse train d.lapse -o closed.st $(cat small) >&- 2>&-; cmp closed.st whole.st
$ lapse train d.lapse -o closed.st $(cat small) <&- 2>&- >/dev/null; cmp closed.st whole.st
$ lapse import - -o closed.lapse <&-
! lapse: standard input: the file is empty: it must have a header and rows
= 1

# A pipe is no dataset and no model, and nothing waits for the writer of one; events in text come through a pipe.
$ cat events.csv >pipe & timeout 10 lapse info pipe 2>&1 | head -3
| lapse: pipe: columns: sequence 'user', time 'time', event 'event'
| file             pipe (events in text)
| sequences        12
$ timeout 10 lapse train <(cat events.csv) -o m5.st --model majority --no-eval 2>/dev/null | grep -c saved
| 1
$ timeout 10 lapse eval pipe d.lapse
! lapse: pipe: this is not a regular file
= 1
$ timeout 10 lapse train d.lapse -o m5.st --task recommend --item-vectors pipe
! lapse: pipe: this is not a regular file
= 1

# A dataset that is truncated while it is in use.
$ lapse simulate -o t.csv --sequences 2000 >/dev/null; lapse import t.csv -o t.lapse --event item >/dev/null
$ lapse train t.lapse -o t.st --epochs 1000000 --patience 1000000 --dims 4 --threads 2 2>log & \
  for i in $(seq 2400); do grep -qs 'epoch 1/' log && break; sleep 0.05; done; truncate -s 0 t.lapse; wait $!; echo "exit $?"; grep '^lapse: a file' log; ls t.st
| exit 1
| lapse: a file was truncated by another process while it was being read
! ls: cannot access 't.st': No such file or directory
= 2

# One bound for the number of threads.
$ lapse eval m.st d.lapse --threads 1073741824
! lapse: --threads takes an integer from 1 to 4096, not '1073741824'
! lapse: see `lapse eval --help`
= 2
$ lapse eval m.st d.lapse --threads 4097
! lapse: --threads takes an integer from 1 to 4096, not '4097'
! lapse: see `lapse eval --help`
= 2
$ lapse eval m.st d.lapse --threads 0
! lapse: --threads takes an integer from 1 to 4096, not '0'
! lapse: see `lapse eval --help`
= 2
$ lapse import events.csv -o e.lapse --threads 5000
! lapse: --threads takes an integer from 1 to 4096, not '5000'
! lapse: see `lapse import --help`
= 2
$ lapse predict m.st history.csv --at +1d --threads 5000
! lapse: --threads takes an integer from 1 to 4096, not '5000'
! lapse: see `lapse predict --help`
= 2
$ lapse bound --threads 5000
! lapse: --threads takes an integer from 1 to 4096, not '5000'
! lapse: see `lapse bound --help`
= 2
$ lapse bench --threads 5000
! lapse: --threads takes an integer from 1 to 4096, not '5000'
! lapse: see `lapse bench --help`
= 2
$ lapse demo --threads 5000
! lapse: --threads takes an integer from 1 to 4096, not '5000'
! lapse: see `lapse demo --help`
= 2
$ lapse demo --keep shop/folder
! lapse: shop/folder: cannot make the folder: No such file or directory
= 1
# A folder is made, or the one that is there is used.
$ for again in 1 2; do \
    lapse demo --keep shop >/dev/null 2>&1 & \
    while kill -0 $! 2>/dev/null && [ ! -e shop/shop.csv ]; do sleep 0.05; done; \
    kill -9 $! 2>/dev/null; wait $! 2>/dev/null; ls shop/shop.csv; rm -f shop/shop.csv; \
  done; rm -rf shop
| shop/shop.csv
| shop/shop.csv
$ lapse train d.lapse -o m6.st --threads 5000
! lapse: --threads takes a whole number from 1 to 4096, not '5000'
! lapse: see `lapse train --help`
= 2
$ ls *.tmp* | grep -v '^[abc]\.tmp'
= 1
