import { readFileSync } from 'node:fs';
import { unzipSync } from 'fflate';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { inspectForm } from '../../src/export/inspect-log.ts';
import { columns, csvForm, parquetForm } from '../../src/export/trial-table.ts';
import type { TrialForm, Write } from '../../src/export/write-export.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { exported } from './exported-trials.ts';

/** What a form writes, by the names of its files. */
async function written(
  form: (open: (name: string) => Promise<Write>) => TrialForm | Promise<TrialForm>,
  trials = exported,
): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer[]>();
  const opened = await form(async (name) => {
    const parts: Buffer[] = [];
    files.set(name, parts);
    return async (part) => void parts.push(Buffer.from(part));
  });
  for (const trial of trials) await opened.add(trial);
  await opened.end();
  return new Map([...files].map(([name, parts]) => [name, Buffer.concat(parts)]));
}

describe('a table', () => {
  test('as CSV has a row for each trial, and quotes what would break a row', async () => {
    const csv = String((await written(async (open) => csvForm(await open('t')))).get('t'));
    const [head, ...rows] = csv.trimEnd().split('\n');
    expect(head?.split(',')).toEqual(Object.keys(columns));
    expect(rows).toHaveLength(4);
    expect(rows[0]).toContain(
      'batch_1,"Suite, the ""first""",embedded,run_large,hello,large,0,m-large,codex',
    );
    expect(rows[0]).toContain(
      'failed,false,,,"verify: test -f hello exited 1: Error: ""no"", none",0.4,"{""taste"":0.4}",2,false,',
    );
    expect(rows[0]).toContain('2026-03-12T14:14:00.007Z,2026-03-12T14:14:09.130Z,9123,5000,2000,,390,1,');
    expect(rows[0]).toContain('1000,50,600,100,1050,0.0123456789,1,1,1,1');
    expect(rows[2]).toContain('void,,infrastructure,sandbox,the engine went away,,,1,false,');
  });

  test('has its columns in the reference', () => {
    const page = readFileSync('docs/reference/results.md', 'utf8');
    const listed = [...page.matchAll(/^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \|$/gm)].map(([, ...row]) => row);
    const own = Object.entries(columns).map(([name, { about }]) => [name, about]);
    expect(listed).toEqual(expect.arrayContaining(own));
  });

  test('as Parquet has the same values with their types', async () => {
    const bytes = (await written(async (open) => parquetForm(await open('t')))).get('t') ?? Buffer.alloc(0);
    const file = new Uint8Array(bytes).buffer;
    const rows = await parquetReadObjects({ file });
    expect(rows).toHaveLength(4);
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys(columns));
    expect(rows[0]).toMatchObject({
      suite: 'Suite, the "first"',
      ordinal: 0n,
      passed: false,
      total_tokens: 1_050n,
      started_at: new Date('2026-03-12T14:14:00.007Z'),
      duration_ms: 9_123,
      cost_usd: 0.0123456789,
      cause: null,
      score: 0.4,
      scores: '{"taste":0.4}',
    });
    expect(rows.map(({ passed }) => passed)).toEqual([false, true, null, true]);
  });
});

describe('.eval logs', () => {
  const text = async () =>
    new Map(
      [...(await written((open) => inspectForm(open)))].map(([name, bytes]) => {
        const files = Object.entries(unzipSync(bytes));
        return [
          name,
          new Map(files.map(([path, content]) => [path, JSON.parse(Buffer.from(content).toString())])),
        ];
      }),
    );

  test('there is one for each variant, with a sample for each trial', async () => {
    const logs = await text();
    expect([...logs.keys()]).toEqual([
      '2026-03-12T14-14-00-007Z_Suite-the-first-_large-0.eval',
      '2026-03-12T14-14-00-007Z_Suite-the-first-_small-fast-1.eval',
    ]);
    const [large, small] = [...logs.values()];
    expect([...(large?.keys() ?? [])]).toEqual([
      'samples/hello_epoch_1.json',
      'samples/hello_epoch_2.json',
      '_journal/start.json',
      '_journal/summaries/1.json',
      'summaries.json',
      'reductions.json',
      'header.json',
    ]);
    expect(large?.get('header.json')).toMatchObject({
      eval: { task: 'Suite, the "first"', model: 'm-large', solver: 'codex', config: { epochs: 2 } },
      results: {
        total_samples: 2,
        scores: [
          { name: 'verdict', metrics: { accuracy: { value: 0.5 }, stderr: { value: 0.5 } } },
          { name: 'taste', metrics: { mean: { value: 0.4 } }, unscored_samples: 1 },
        ],
      },
    });
    expect(small?.get('header.json')).toMatchObject({
      // Two logs with one task_id are shown as one that was tried again.
      eval: { task_id: 'batch_1/small/fast', task_args: { variant: 'small/fast' } },
      results: { total_samples: 2, completed_samples: 1 },
    });
  });

  test('a sample has scores, tokens without those that were cached, messages and events in order', async () => {
    const [large, small] = [...(await text()).values()];
    const sample = large?.get('samples/hello_epoch_1.json');
    expect(sample).toMatchObject({
      scores: { verdict: { value: 'I' }, taste: { value: 0.4 } },
      total_time: 9.123,
      error: null,
      error_retries: [{ message: 'the engine went away' }],
      model_usage: {
        'm-large': { input_tokens: 300, input_tokens_cache_read: 600, input_tokens_cache_write: 100 },
        'm-judge': { total_tokens: 8 },
      },
      role_usage: { agent: { total_tokens: 1_050, total_cost: 0.0123456789 } },
    });
    const said = sample.messages.map(({ role, content }: { role: string; content: string }) => [
      role,
      content,
    ]);
    expect(said).toEqual([
      ['user', 'Say "hello",\nand nothing else.'],
      ['assistant', 'I look.'],
      ['assistant', ''],
      ['tool', 'no such "file"\n'],
      ['assistant', ''],
      ['tool', 'a'],
    ]);
    expect(sample.events.map(({ event }: { event: string }) => event)).toEqual([
      'span_begin',
      'model',
      'info',
      'tool',
      'tool',
      'info',
      'span_end',
      'span_begin',
      'sandbox',
      'span_end',
      'score',
    ]);
    expect(small?.get('samples/hello_epoch_1.json')).toMatchObject({
      scores: null,
      error: { message: 'infrastructure, in sandbox: the engine went away' },
    });
    expect(small?.get('samples/hello_epoch_2.json')).toMatchObject({ limit: { type: 'time', limit: 9 } });
  });

  test('two trials of one case and ordinal are two epochs', async () => {
    const [first] = exported;
    if (!first) throw new Error('there is a trial');
    const files = await written((open) => inspectForm(open), [first, first]);
    const names = [...files.values()].flatMap((bytes) => Object.keys(unzipSync(bytes)));
    expect(names).toContain('samples/hello_epoch_2.json');
  });
});

test('a known key is in no form: a trial is cleaned before the forms get it', async () => {
  const key = 'sk-a-key-that-was-told-later';
  const redactor = new Redactor([key]);
  const leaking = exported.map((trial) => ({
    ...trial,
    batch: { ...trial.batch, suite: `Suite "${key}"` },
    record: { ...trial.record, events: [{ kind: 'message' as const, at: 1, text: `it is ${key}` }] },
  }));
  const cleaned = leaking.map((trial) => redactor.value(trial));
  expect(cleaned[0]?.record.events).toEqual([{ kind: 'message', at: 1, text: 'it is [redacted]' }]);
  expect(redactor.value(exported[0])).toBe(exported[0]);
  const csv = await written(async (open) => csvForm(await open('t')), cleaned);
  expect(String(csv.get('t'))).toContain('[redacted]');
  for (const bytes of (await written((open) => inspectForm(open), cleaned)).values())
    for (const content of Object.values(unzipSync(bytes)))
      expect(Buffer.from(content).toString()).not.toContain(key);
});
