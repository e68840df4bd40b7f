// What is expected lies beside the validator, where the program under test cannot read it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { validate } from 'offsite/validator';

const expected: Record<string, { words: string[]; sum: number }> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'expected.json'), 'utf8'),
);

for (const [name, { words, sum }] of Object.entries(expected)) {
  validate(name, { timeout: 30_000 }, async ({ run, input }) => {
    input(words);
    const { stdout, exitCode, stderr } = await run('python3', ['sum.py', ...words]);
    assert.equal(exitCode, 0, stderr);
    assert.equal(Number(stdout), sum);
    return stdout;
  });
}

validate('it is short', async ({ read, metadata }) => {
  const lines = (await read('sum.py')).trimEnd().split('\n').length;
  metadata({ lines });
  console.log(`${lines} lines`);
  assert.ok(lines <= 10, `${lines} lines are more than 10`);
});
