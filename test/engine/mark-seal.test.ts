import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { MarkSeal } from '../../src/engine/script/mark-seal.ts';

const driver = join(import.meta.dirname, '../../src/engine/script/driver.sh');
const script = `source <(sed -n '/^__offsite_mark()/,/^}/p' "$1")
__offsite_secret=secret __offsite_key=$2 __offsite_marks=0 __offsite_out=1
shift 2; __offsite_pads=("$@")
eval "$clock"
__offsite_mark B 3 17`;

test.each([
  ['as it is', ''],
  ['unset', 'unset EPOCHREALTIME'],
  ['no number', 'unset EPOCHREALTIME; EPOCHREALTIME=nothing'],
  ['octal', 'unset EPOCHREALTIME; EPOCHREALTIME=0.0899'],
  ['too large', 'unset EPOCHREALTIME; EPOCHREALTIME=99999999999999999999'],
])(
  'a mark is the next one as the shell wrote it, and not if a word of it is changed; clock %s',
  async (_, clock) => {
    const seal = new MarkSeal(4);
    const args = ['-c', script, 'bash', driver, String(seal.key), ...seal.pads];
    const { stdout, stderr } = await execa('bash', args, { env: { clock }, stripFinalNewline: false });
    expect(stderr).toBe('');
    const [secret, ...fields] = stdout.replace(/\n$/, '').split(' ');
    expect([secret, ...fields.slice(1, 4)]).toEqual(['secret', 'B', '3', '17']);
    for (const [index, field] of fields.entries()) {
      const other = index === 1 ? 'E' : String(Number(field) + 1);
      expect(seal.isNext(fields.with(index, other)), `${field} as ${other}`).toBe(false);
    }
    expect(seal.isNext(fields)).toBe(true);
    expect(seal.isNext(fields)).toBe(false);
  },
);
