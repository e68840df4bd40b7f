import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withoutCanary } from '../../src/tasks/harbor/read-harbor.ts';
import { readRewards } from '../../src/tasks/harbor/reward.ts';
import { readTask } from '../../src/tasks/read-task.ts';
import { printedTestParsers } from '../../src/tasks/swe-bench/log-parsers.ts';
import { runs } from '../short-tests.ts';
import { eachTaskSet, set } from './each-task-set.ts';

eachTaskSet();

const words = [
  '[environment]',
  '[[steps]]',
  '[agent]',
  '[verifier.env]',
  '[metadata.__proto__]',
  'name',
  'env',
  'cpus',
  'artifacts',
  'network_mode',
  'allowed_hosts',
  'mcp_servers',
  'timeout_sec',
  'docker_image',
  ' = ',
  '.',
  '"',
  "'",
  '"""',
  '[',
  ']',
  '{',
  '}',
  ',',
  '\n',
  '#',
  '1',
  '-',
  'inf',
  'true',
  '"a"',
  'services:',
  ' main:',
  '  build:',
  ' - ',
  '&a',
  '*a',
  '<<:',
  '!!map',
  '${',
  '}',
  ':-',
  '|',
  '>',
  '\t',
  '2026-01-01',
  '"$',
  '{A:-b}"',
  '../..',
  '/etc',
  '\u0000',
  '\u001b[2J',
  '\ud800',
  'é',
];
const soup = fc.array(fc.constantFrom(...words), { maxLength: 60 }).map((parts) => parts.join(''));

test('whatever the files of a task say, the answer is a task or its problems', () => {
  fc.assert(
    fc.property(soup, soup, fc.boolean(), (settings, compose, isHarbor) => {
      const found = isHarbor
        ? set.harbor('task', { 'task.toml': settings, 'environment/docker-compose.yaml': compose })
        : set.terminalBench('task', { 'task.yaml': settings, 'docker-compose.yaml': compose });
      const read = readTask(found);
      if (!read.task) expect(read.issues.length).toBeGreaterThan(0);
    }),
    { numRuns: runs(300) },
  );
});

test('whatever tests write or print, a reward is finite, and no result is never a pass', () => {
  const text = fc.oneof(fc.json(), fc.string(), fc.double().map(String), soup);
  fc.assert(
    fc.property(text, (written) => {
      const bytes = new TextEncoder().encode(written);
      for (const files of [
        { json: bytes, text: undefined },
        { json: undefined, text: bytes },
      ]) {
        const found = readRewards(files);
        if (found.kind === 'none') expect(found.problem).not.toBe('');
        else expect([...found.rewards.values()].every(Number.isFinite)).toBe(true);
      }
      for (const parse of Object.values(printedTestParsers)) {
        const parsed = parse(written);
        if (parsed.kind === 'results') expect(parsed.results.size).toBeGreaterThan(0);
      }
      expect(withoutCanary(written).length).toBeLessThanOrEqual(written.length);
    }),
    { numRuns: runs(1000) },
  );
});
