import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import type { Usage } from '../../contract/report.ts';
import type { CheckedModel } from '../../setup/models/check-model.ts';
import type { Examined } from '../../setup/models/examine.ts';
import type { Finding } from '../../setup/models/findings.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { table } from '../../text/fit.ts';
import {
  joined,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

export function modelsCheckCommand(clock: Clock, terminal: Terminal) {
  return withConfigAndData(new Command('check'))
    .description(
      'call a model for real, and print what it can do and what that means for offsite.yaml; exit 1 if it has a problem',
    )
    .argument('[name]', "the model's name, as `offsite models` shows it (default: the only one)")
    .option('--wire <wire>', "only one of the model's wires (default: its first, then all others)", wireName)
    .option('--quick', 'make only one minimal call')
    .option('--deep', 'measure by long prompts how much context it holds')
    .option('--up-to <tokens>', 'the longest prompt of --deep (default: its context window)', wholeNumber)
    .option('--timeout <seconds>', 'how long to wait for an answer (default: 120)', wholeNumber)
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      // Read only now, so that the list of models comes fast.
      const { checkModel } = await import('../../setup/models/check-model.ts');
      await using context = CommandContext.open(options, { clock, terminal });
      const { out, err } = context;
      context.note = () => err.print('stopping');
      const { signal } = context.interruption();
      const note = (message: Printable) => err.print(message);
      const checked = await checkModel(context, name, options, { note, signal });
      if (options.json) out.json(checked);
      else out.print(checkReport(checked));
      const { findings = [] } = checked.examined ?? {};
      if (findings.some(({ level }) => level === 'problem')) process.exitCode = exitCodes.belowThreshold;
    });
}

function wireName(text: string): Wire {
  const wire = wires.find((one) => one === text);
  if (!wire) throw new InvalidArgumentError(`expected one of ${wires.join(', ')}.`);
  return wire;
}

/** What a check found, for people. */
function checkReport(checked: CheckedModel): Printable {
  const { examined } = checked;
  const rows = [...answerRows(checked), ...(examined ? examinedRows(examined) : [])];
  const facts = table(['model', checked.model], rows);
  return examined && examined.findings.length > 0
    ? stack([facts, '', ...examined.findings.map(findingText)])
    : facts;
}

function answerRows(checked: CheckedModel): [Value, Value][] {
  const { answer, usage, failedTries, examined, pricesOf } = checked;
  return present([
    ['answer', text`"${answer.text}"${answer.stopped === 'done' ? '' : ` (${answer.stopped})`}`],
    ['answered by', checked.answeredBy ?? 'unknown'],
    ['wire', checked.wire],
    ['where', checked.where],
    ['latency', duration(checked.latencyMs)],
    !examined && ['tokens', tokensOf(usage)],
    usage.costUsd !== undefined && ['cost', `${usage.costUsd.toFixed(6)} USD (prices of ${pricesOf})`],
    ...failedTries.map(({ reason }): [Value, Value] => ['tried again', reason]),
  ]);
}

function tokensOf({ inputTokens, outputTokens }: Pick<Usage, 'inputTokens' | 'outputTokens'>): string {
  return `${inputTokens ?? 'unknown'} in, ${outputTokens ?? 'unknown'} out`;
}

function examinedRows(examined: Examined): [Value, Value][] {
  const { server, wires, tools, harnesses, speed, told: reported, measuredContext, used } = examined;
  const version = server?.version === undefined ? '' : text` ${server.version}`;
  const wiresIn = (...states: string[]) =>
    states.flatMap((state) => (wires ?? []).filter((one) => one.state === state).map(({ wire }) => wire));
  const unknown = wiresIn('failed', 'limited');
  const called = { works: 'work', unused: 'called, results not used' } as Readonly<Record<string, string>>;
  const names = harnesses
    .filter(({ state }) => state === 'works')
    .map(({ harness, isTranslated }) => `${harness}${isTranslated ? ' (translated)' : ''}`);
  const streams = { works: 'works', together: 'in one piece', failed: 'does not work' }[speed.streaming];
  const about = speed.estimated ? 'about ' : '';
  const more = used.unreported > 0 ? `; ${used.unreported} answers did not report any` : '';
  return present([
    server && ['server', text`${server.kind}${version}`],
    wires && ['speaks', wiresIn('works').join(', ')],
    unknown.length > 0 && ['not known', unknown.join(', ')],
    ['tools', text`${called[tools.state] ?? 'do not work'}${tools.parallel ? ', several at a time' : ''}`],
    tools.reason !== undefined && ['', tools.reason],
    ['works with', names.length === 0 ? 'no harness' : `${names.join(', ')}, and others of their wires`],
    ['streaming', streams],
    ['first token', duration(speed.firstTokenMs)],
    speed.tokensPerSecond !== undefined && [
      'speed',
      `${about}${speed.tokensPerSecond.toFixed(1)} tokens/s, median of ${speed.samples}`,
    ],
    reported.contextWindow !== undefined && [
      'context',
      `${reported.contextWindow} tokens, as the server says`,
    ],
    measuredContext && ['measured', measuredText(measuredContext)],
    ['tokens', `${tokensOf(used)}, in ${used.requests} requests${more}`],
  ]);
}

function measuredText({ holds, fails, stopped }: NonNullable<Examined['measuredContext']>): string {
  const how = fails?.how === 'cut' ? 'cuts' : 'refuses';
  const more = fails ? `, ${how} ${fails.length}` : ', the longest that was tried';
  return `holds ${holds} tokens${more}${stopped === undefined ? '' : `; ended early: ${stopped}`}`;
}

function findingText({ level, says, set }: Finding): Printable {
  const mark = level === 'problem' ? styled('red', ours('problem')) : styled('yellow', ours('advice'));
  return set === undefined
    ? text`${mark}: ${says}`
    : joined([text`${mark}: ${says}`, text`set it in offsite.yaml: ${set}`], ' – ');
}
