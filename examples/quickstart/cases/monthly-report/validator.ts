// Reads the report that was written, and asks report.py for a month that no test names. What is printed here is kept
// with the trial as the logs of the validation, and what is returned as its output.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { validate } from 'offsite/validator';

const source = await readFile(join(import.meta.dirname, 'expected.json'), 'utf8');
const expected: Record<string, string[]> = JSON.parse(source);

/** The lines of a month's report, without the header. */
async function report(workspace: string, month: string | undefined): Promise<string[]> {
  const text = await readFile(join(workspace, `report-${month}.csv`), 'utf8');
  return text.trim().split(/\r?\n/).slice(1);
}

validate("the month's figures are right", async ({ workspace, variables }) => {
  const lines = await report(workspace, variables.month);
  for (const line of lines) console.log(line);
  assert.deepEqual(lines, expected['2024-03']);
  return { month: variables.month, regions: lines.length };
});

validate("another month's figures are right", async ({ workspace, run }) => {
  const { exitCode, stderr } = await run('env', ['-C', workspace, 'month=2024-04', 'python3', 'report.py']);
  assert.equal(exitCode, 0, stderr);
  assert.deepEqual(await report(workspace, '2024-04'), expected['2024-04']);
});

validate('revenue has two decimals', async ({ workspace, variables }) => {
  for (const line of await report(workspace, variables.month)) assert.match(line, /,-?\d+\.\d\d$/);
});
