// Attacks one build of dset, and prints what happened as JSON: {polluted: names of attacks, written: objects}.
// It runs in a process of its own, as a build that fails has spoilt Object.prototype.
// Usage: node probe.mjs <path of the build>
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const build = process.argv[2];
const { dset } = build.endsWith('.mjs')
  ? await import(pathToFileURL(build).href)
  : createRequire(import.meta.url)(build);

let asked = 0;
const attacks = {
  'a dotted string': '__proto__.polluted',
  'a plain key': ['__proto__', 'polluted'],
  'a key in an array': [['__proto__'], 'polluted'],
  'a key in two arrays': [[['__proto__']], 'polluted'],
  'a key further down': ['inner', ['__proto__'], 'polluted'],
  'the constructor': [['constructor'], ['prototype'], 'polluted'],
  'an object that reads as a key': [{ toString: () => '__proto__' }, 'polluted'],
  // Harmless when it is checked, harmful when it is used: only a key that is made a string once is safe.
  'an object that changes its text': [
    { toString: () => (asked++ === 0 ? 'harmless' : '__proto__') },
    'polluted',
  ],
};

const polluted = [];
for (const [name, path] of Object.entries(attacks)) {
  dset({}, path, true);
  if ({}.polluted !== undefined) polluted.push(name);
  delete Object.prototype.polluted;
}

const written = [{}, {}, { a: { b: 1 } }, { list: ['x'] }];
dset(written[0], 'a.b.c', 1);
dset(written[1], ['list', 0, 'name'], 'first');
dset(written[2], 'a.c', 2);
dset(written[3], 'list.1', 'y');

console.log(JSON.stringify({ polluted, written }));
