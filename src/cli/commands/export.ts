import { Command, Option } from '@commander-js/extra-typings';
import { OffsiteError } from '../../base/offsite-error.ts';
import { spanRequests } from '../../export/export-spans.ts';
import { exportedTrials, type ReadOptions } from '../../export/read-trials.ts';
import { otlpHeaders, receiverUrl, sendSpans } from '../../export/send-spans.ts';
import { writeExport } from '../../export/write-export.ts';
import { findBatch, lastBatch } from '../../ledger/find.ts';
import type { Verdict } from '../../ledger/trials.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { exportPage } from '../export-page.ts';
import { withConfigAndData } from '../options.ts';

const verdicts = ['passed', 'failed', 'void'] as const satisfies readonly Verdict[];

export function exportCommand() {
  return withConfigAndData(new Command('export'))
    .description('write a batch for others: its full records, or spans for OpenTelemetry')
    .argument('[batch]', 'its id or the beginning of its id (default: the last batch)')
    .option(
      '--json <file>',
      'full records as JSON Lines, one trial a line; schemas/exported-trial.schema.json',
    )
    .option('--html <file>', 'one page that opens without a server or a network, as `offsite view` shows it')
    .option('--otlp <file|url>', 'spans as OTLP in JSON: to a file, a request a line, or to a receiver')
    .option('--cassette <file>', 'its exchanges with models, to replay: `replay: FILE` of a model')
    .addOption(new Option('--only <verdict...>', 'only trials with this verdict').choices(verdicts))
    .option('--with-outputs', 'include the texts that records name: diffs, logs, recorded model traffic')
    .action(async (batch, options) => {
      await exportBatch(batch, options);
    });
}

interface ExportOptions {
  config?: string | undefined;
  dataFolder?: string | undefined;
  json?: string | undefined;
  otlp?: string | undefined;
  html?: string | undefined;
  cassette?: string | undefined;
  only?: Verdict[] | undefined;
  withOutputs?: true | undefined;
}

async function exportBatch(reference: string | undefined, options: ExportOptions): Promise<void> {
  if ([options.html, options.json, options.otlp, options.cassette].every((target) => target === undefined)) {
    throw new OffsiteError('nothing says what to export', {
      code: 'EXPORT_FORM_MISSING',
      kind: 'input',
      hint: 'Give --html FILE, --json FILE, --cassette FILE, --otlp FILE or --otlp URL.',
    });
  }
  const { config, dataFolder } = options;
  await using context = CommandContext.open({ config, dataFolder });
  const { signal } = context.interruption({ doing: () => 'ending' });
  const { records } = context.ledger();
  const batch = reference === undefined ? lastBatch(records) : findBatch(records, reference);
  const unreadable = (message: string) => {
    context.err.print(`left out: ${message}`);
    process.exitCode = exitCodes.infrastructure;
  };
  const exporting = { context, batch, options: { ...options, unreadable }, signal };
  if (options.html !== undefined) await exportPage(options.html, batch, context, signal, options);
  if (options.json !== undefined) await exportJson(options.json, exporting);
  if (options.cassette !== undefined) await exportCassette(options.cassette, exporting);
  if (options.otlp !== undefined) await exportSpans(options.otlp, exporting);
}

interface Exporting {
  context: CommandContext;
  batch: ReturnType<typeof findBatch>;
  options: ExportOptions & Pick<ReadOptions, 'unreadable'>;
  signal: AbortSignal;
}

async function exportJson(file: string, { context, batch, options, signal }: Exporting): Promise<void> {
  const { redactor, err } = context;
  let trials = 0;
  await writeExport(file, async (write) => {
    for (const trial of exportedTrials(context.ledger(), batch, options)) {
      signal.throwIfAborted();
      await write(`${redactor.json(trial)}\n`);
      trials += 1;
    }
  });
  err.print(`${file}: ${plural(trials, 'trial')} of ${batch.id}`);
}

async function exportCassette(file: string, { context, batch, signal }: Exporting): Promise<void> {
  const { ledgerCassette, requireRecorded } = await import('../../agent/ledger-cassette.ts');
  const { cassetteLines } = await import('../../gateway/replay/cassette-lines.ts');
  const { redactor, err } = context;
  const ledger = context.ledger();
  requireRecorded(ledger, batch);
  const leftOut: string[] = [];
  const cassette = ledgerCassette({ ledger, leftOut: (why) => leftOut.push(why) }, batch);
  let exchanges = 0;
  await writeExport(file, async (write) => {
    for (const line of cassetteLines(cassette, batch.suite)) {
      signal.throwIfAborted();
      if ('exchange' in line) exchanges += 1;
      await write(`${redactor.json(line)}\n`);
    }
  });
  err.print(
    `${file}: ${plural(exchanges, 'exchange')} of ${plural(cassette.trials.length, 'trial')} of ${batch.id}`,
  );
  for (const why of leftOut) err.print(`left out: ${why}`);
}

async function exportSpans(target: string, { context, batch, options, signal }: Exporting): Promise<void> {
  const { clock, env, err, redact } = context;
  const requests = spanRequests(exportedTrials(context.ledger(), batch, options), redact);
  if (!/^[a-z]+:\/\//i.test(target)) {
    await writeExport(target, async (write) => {
      for await (const request of requests) {
        signal.throwIfAborted();
        await write(request);
        await write('\n');
      }
    });
    err.print(`${target}: the spans of ${batch.id}`);
    return;
  }
  const url = receiverUrl(target);
  const headers = otlpHeaders(env.OTEL_EXPORTER_OTLP_HEADERS);
  // The answer of a receiver may repeat the headers. In `Bearer KEY`, the key alone is a secret too.
  context.redactor.learn(Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/)]));
  let rejected = 0;
  for await (const request of requests)
    rejected += await sendSpans(request, { url, headers, clock, signal, random: Math.random });
  err.print(`${url.origin}${url.pathname} took the spans of ${batch.id}`);
  if (rejected === 0) return;
  throw new OffsiteError(`the receiver did not take ${plural(rejected, 'span')}`, {
    code: 'OTLP_REJECTED',
    kind: 'infrastructure',
    hint: 'Its own log says why. Exporting again sends the same spans with the same ids.',
  });
}
