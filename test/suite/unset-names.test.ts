import { expect, test } from 'vitest';
import { unsetNames, usesVariables } from '../../src/suite/variables.ts';

const readsWho = [
  'grep -q "$who" hello.txt',
  `test "\${who}" = world`,
  `test "\${who:?}" = world`,
  `bash -c 'grep "$who" hello.txt'`,
  `bash <<'EOF'\ngrep "$who" hello.txt\nEOF`,
  `python3 -c 'import os; assert os.environ["who"]'`,
  `node -e 'process.env.who || process.exit(1)'`,
  `it="isn't" && grep "$who" x`,
  'cat <<EOF | sh\necho $who\nEOF',
  'printenv who | grep -f - hello.txt',
  'echo "$(grep "$who" a)"',
];
test.each(readsWho)('a name that nobody sets is found: %s', (script) => {
  expect(unsetNames(script)).toEqual(['who']);
});

const whole = [
  'who=world; grep "$who" a',
  'for who in a b; do echo "$who"; done',
  'while read -r who what; do echo "$who $what"; done < list',
  '# it costs $who\ntrue',
  `awk '{ print $NF, $who }' a`,
  `test "$(awk '{ print $NF }' a)" = 1`,
  `cat > note.txt <<'EOF'\nit costs $who\nEOF\ntrue`,
  `echo "\\$who" \\$who "\${who:-nobody}" "\${who+set}"`,
  `test -d "$HOME/x" && [ $? = 0 ] && cd "$PWD" && echo $1 $@ $$ $RANDOM "\${#BASH_SOURCE[@]}"`,
  '. ./venv/bin/activate && echo "$VIRTUAL_ENV"',
  'export who=a; local_only=1; echo $who $local_only',
  'for ((i = 0; i < 3; i++)); do echo $i; done',
  `mapfile -t lines < a; echo "\${lines[0]}" "\${#lines[@]}"`,
  'f() { local a b; a=1; echo $a $b; }; f',
  `who[0]=a; echo "\${who[0]}"`,
  'n=0; n+=1; ((n++)); echo $n',
  'printf -v who %s a; echo $who',
];
test.each(whole)('a script that reads only what it has runs: %s', (script) => {
  expect(unsetNames(script)).toEqual([]);
});

test('a name that the sandbox gets from the machine is set', () => {
  expect(unsetNames('echo $JAVA_HOME', ['JAVA_HOME'])).toEqual([]);
});

test('a validator that uses variables is told from one that speaks of them', () => {
  expect(usesVariables('validate("x", ({ variables, read }) => {})')).toBe(true);
  expect(usesVariables('validate("x", (given) => given.variables.who)')).toBe(true);
  expect(usesVariables('// reads the variables.\nvalidate("no variables are left", () => {})')).toBe(false);
});
