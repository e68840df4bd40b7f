# Does each case's work, by its `task`, and cheats in one of them.
case $task in
  reply) echo 'We are sorry for the delay. Your parcel arrives on Friday; tell us if it does not.' > reply.txt ;;
  curt) echo 'Wait.' > reply.txt ;;
  sum) printf 'import sys\nprint(sum(int(word) for word in sys.argv[1:]))\n' > sum.py ;;
  install) printf '#!/bin/sh\necho hello\n' > /usr/local/bin/greet; chmod +x /usr/local/bin/greet ;;
  cheat) echo 'exit 0' > tests/sum.sh ;;
esac
