// Makes each key a string where it is taken from the path, before anything looks at it. The minified builds take it
// the same way under other names, so that one expression finds the place in all six.
import assert from 'node:assert/strict';
import { globSync, readFileSync, writeFileSync } from 'node:fs';

const taken = /(\w+\[\w+\+\+\])/;
for (const path of globSync('{dist,merge}/*.{js,mjs}')) {
  const source = readFileSync(path, 'utf8');
  assert.match(source, taken, `${path} takes its keys in another way`);
  writeFileSync(path, source.replace(taken, "''+$1"));
  console.log(`Repaired ${path}`);
}
