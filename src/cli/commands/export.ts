import { mkdtempDisposable } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { makeFolder } from '../../base/byte-store.ts';
import { infrastructureError, inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { otlpHeaders, receiverUrl, sendSpans } from '../../export/send-spans.ts';
import { spanRequests } from '../../export/trial-spans.ts';
import {
  exportedTrials,
  jsonForm,
  openExport,
  openFolder,
  type ReadOptions,
  type TrialForm,
  writeExport,
} from '../../export/write-export.ts';
import { findBatch, lastBatch, listTrials } from '../../ledger/find.ts';
import type { Verdict } from '../../ledger/trials.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { exportPage } from '../export-page.ts';
import { type OptionsOf, withConfigAndData } from '../options.ts';
import { readTrial } from '../output/stored-batch.ts';
import { refuseSharedFiles } from '../write-text.ts';

const verdicts = ['passed', 'failed', 'void'] as const satisfies readonly Verdict[];

export function exportCommand() {
  return withConfigAndData(new Command('export'))
    .description('write a batch for others: its full records, or spans for OpenTelemetry; - is stdout')
    .argument('[batch]', 'its id or the beginning of its id (default: the last batch)')
    .option(
      '--json <file|->',
      'full records as JSON Lines, one trial a line; schemas/exported-trial.schema.json',
    )
    .option('--csv <file|->', 'a table with one row a trial, for pandas, DuckDB and spreadsheets')
    .option('--parquet <file|->', 'the same table as Parquet')
    .option('--inspect <folder>', 'one .eval log a variant, as inspect_ai writes them, for `inspect view`')
    .option('--harbor <folder>', 'a job of Harbor, with trajectories in ATIF, for `harbor view`')
    .option(
      '--html <file|->',
      'one page that opens without a server or a network, as `offsite view` shows it',
    )
    .option('--otlp <file|url|->', 'spans as OTLP in JSON: to a file, a request a line, or to a receiver')
    .option('--cassette <file|->', 'its exchanges with models, to replay: `replay: FILE` of a model')
    .option('--evidence <file|->', 'everything that others need to check its results, as one tar archive')
    .option('--include-image', 'with --evidence: also the images of its sandboxes, which may be large')
    .option(
      '--sign-with <key>',
      'with --evidence: what signs it: a file with an ed25519 key, of OpenSSH or in PEM; or `sigstore`, for the ' +
        'account of SIGSTORE_ID_TOKEN or of the CI',
    )
    .addOption(new Option('--only <verdict...>', 'only trials with this verdict').choices(verdicts))
    .option('--with-outputs', 'include the texts that records name: diffs, logs, recorded model traffic')
    .action(async (batch, options) => {
      await exportBatch(batch, options);
    });
}

type ExportOptions = OptionsOf<typeof exportCommand>;

async function exportBatch(reference: string | undefined, options: ExportOptions): Promise<void> {
  const { html, cassette, evidence, otlp } = options;
  const targets = targetsOf(options);
  if (Object.keys(targets).length === 0)
    throw refused(
      'EXPORT_FORM_MISSING',
      'nothing says what to export',
      '`offsite export --help` lists the forms, for example --html FILE for people or --csv FILE for programs.',
    );
  if (Object.values(targets).filter((target) => target === '-').length > 1)
    throw refused(
      'OPTION_CONFLICT',
      'several forms would be mixed on standard output',
      'Give - to one of them, and files to the others.',
    );
  refuseSharedFiles(targets);
  if (evidence === undefined && (options.signWith !== undefined || options.includeImage))
    throw refused(
      'EXPORT_FORM_MISSING',
      '--sign-with and --include-image are for --evidence, which is not given',
      'Give --evidence FILE.',
    );
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
  if (html !== undefined) await exportPage(html, batch, context, signal, options);
  await exportForms(exporting);
  if (cassette !== undefined) await exportCassette(cassette, exporting);
  if (evidence !== undefined) await exportEvidence(evidence, exporting);
  if (otlp !== undefined) await exportSpans(otlp, exporting);
}

/** The forms that are wanted, by their options, and where they go. */
function targetsOf(options: ExportOptions): Record<string, string> {
  const { html, json, csv, parquet, inspect, harbor, otlp, cassette, evidence } = options;
  const all = { json, csv, parquet, inspect, harbor, html, otlp, cassette, evidence };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, target]) => (target === undefined ? [] : [[`--${name}`, target]])),
  );
}

function refused(code: string, message: string, hint: string): OffsiteError {
  return inputError(code, message, { hint });
}

interface Exporting {
  context: CommandContext;
  batch: ReturnType<typeof findBatch>;
  options: ExportOptions & Pick<ReadOptions, 'unreadable'>;
  signal: AbortSignal;
}

/** Writes the forms that take one trial after the other. Each record is read once for all of them. */
async function exportForms({ context, batch, options, signal }: Exporting): Promise<void> {
  const { json, csv, parquet, inspect, harbor } = options;
  const { redactor, err } = context;
  await using open = new AsyncDisposableStack();
  const kept: { keep(): Promise<void> }[] = [];
  const opened = async (file: string) => {
    const target = open.use(await openExport(file));
    kept.push(target);
    return target.write;
  };
  const forms: TrialForm[] = [];
  const { csvForm, parquetForm } = await import('../../export/trial-table.ts');
  if (json !== undefined) forms.push(jsonForm(await opened(json)));
  if (csv !== undefined) forms.push(await csvForm(await opened(csv)));
  if (parquet !== undefined) forms.push(await parquetForm(await opened(parquet)));
  if (inspect !== undefined) {
    const { inspectForm } = await import('../../export/inspect-log.ts');
    makeFolder(inspect);
    forms.push(inspectForm((name) => opened(join(inspect, name))));
  }
  if (harbor !== undefined) {
    const { harborForm, jobName } = await import('../../export/harbor-job.ts');
    makeFolder(harbor);
    const folder = open.use(await openFolder(join(harbor, jobName(batch))));
    kept.push(folder);
    forms.push(harborForm(folder.put));
  }
  if (forms.length === 0) return;
  let trials = 0;
  for (const read of exportedTrials(context.ledger(), batch, options)) {
    signal.throwIfAborted();
    const trial = redactor.value(read);
    for (const form of forms) await form.add(trial);
    trials += 1;
  }
  for (const form of forms) await form.end();
  for (const each of kept) await each.keep();
  for (const target of [json, csv, parquet, inspect, harbor])
    if (target !== undefined) err.print(`${target}: ${plural(trials, 'trial')} of ${batch.id}`);
}

async function exportCassette(file: string, { context, batch, signal }: Exporting): Promise<void> {
  const { ledgerCassette, requireRecorded } = await import('../../agent/ledger-cassette.ts');
  const { cassetteLines } = await import('../../gateway/replay/cassette-file.ts');
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

async function exportEvidence(file: string, { context, batch, options, signal }: Exporting): Promise<void> {
  const { unsigned } = await import('../../evidence/envelope.ts');
  const { signingWith } = await import('../../evidence/sigstore.ts');
  const { saveImages } = await import('../../evidence/save-images.ts');
  const { writeEvidence } = await import('../../evidence/write-evidence.ts');
  const { redactor, err, clock, env } = context;
  const ledger = context.ledger();
  if (options.only)
    throw refused(
      'OPTION_CONFLICT',
      '--evidence is of all trials of a batch, and --only leaves some out',
      'Remove --only, or write the other forms with a command of their own.',
    );
  const signing = options.signWith === undefined ? unsigned : await signingWith(options.signWith);
  await using folder = await mkdtempDisposable(join(ledger.dataFolder, '.images-'));
  const saving = async () => {
    const { images } = (await context.engines.first(signal)).port;
    return saveImages(batch, { ledger, images, file: join(folder.path, 'images.tar') }, signal);
  };
  const { saved: images, leftOut } = options.includeImage
    ? await saving()
    : { saved: undefined, leftOut: [] };
  const source = { ledger, redactor, signing, images, env, now: clock.now(), signal };
  const written = await writeExport(file, (write) => writeEvidence(batch, source, write));
  leftOut.push(...written.leftOut);
  const trials = plural(written.statement.subject.length, 'trial');
  const signer = signing.by();
  const by = signer === undefined ? 'not signed: --sign-with KEY signs it' : `signed by ${signer}`;
  err.print(`${file}: the evidence of ${trials} of ${batch.id}, sha256 ${written.digest}; ${by}`);
  const commits = written.statement.predicate.contents.filter(({ kind }) => kind === 'commit').length;
  if (commits > 0) err.print(`it holds all files of ${plural(commits, 'commit')} that workspaces begin with`);
  for (const why of leftOut) err.print(`left out: ${why}`);
  if (leftOut.length > 0) process.exitCode = exitCodes.infrastructure;
  const { lacksAnswers } = await import('../../audit/regraded.ts');
  const judged = listTrials(ledger.records, batch.key)
    .filter(({ result }) => result !== undefined)
    .map((trial) => readTrial(ledger, trial));
  const lacking = judged.filter((read) => 'record' in read && lacksAnswers(read.record)).length;
  if (lacking > 0)
    err.print(
      `without what judges answered in ${plural(lacking, 'trial')}: nobody can audit these to \`regraded\` without asking judges ` +
        'again. Set `record: full` on the judge’s model before the next run',
    );
}

async function exportSpans(target: string, { context, batch, options, signal }: Exporting): Promise<void> {
  const { clock, env, err, redact } = context;
  const requests = spanRequests(exportedTrials(context.ledger(), batch, options), redact);
  if (!/^[a-z]+:\/\//i.test(target)) {
    await writeExport(target, async (write) => {
      for (const request of requests) {
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
  for (const request of requests)
    rejected += await sendSpans(request, { url, headers, clock, signal, random: Math.random });
  err.print(`${url.origin}${url.pathname} took the spans of ${batch.id}`);
  if (rejected === 0) return;
  throw infrastructureError('OTLP_REJECTED', `the receiver did not take ${plural(rejected, 'span')}`, {
    hint: 'Its own log says why. Exporting again sends the same spans with the same ids.',
  });
}
