// The sign comes first, at most once, and any number of digits may follow it.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

const faulty = String.raw`^((?:\d+)?\-?\d?\.?\d+)`;
const source = readFileSync('index.js', 'utf8');
assert.ok(source.includes(faulty), 'index.js has another pattern than expected');
writeFileSync('index.js', source.replace(faulty, String.raw`^(-?\d*\.?\d+)`));
