import type { CheckedTools } from '../../gateway/probe/check-tools.ts';
import type { CheckedSpeed, CheckedWire } from '../../gateway/probe/check-wires.ts';
import type { MeasuredContext } from '../../gateway/probe/measure-context.ts';
import type { ServerModel } from '../../gateway/probe/server-models.ts';
import { type HttpModel, mostParallel, type Wire, wiresOf } from '../../suite/model-config.ts';
import { present } from '../../text/printable.ts';

/** What a check means for the configuration. */
export interface Finding {
  level: 'problem' | 'advice';
  says: string;
  /** The line to set in offsite.yaml. */
  set?: string;
}

/** @param set the line to set in offsite.yaml */
function problem(says: string, set?: string): Finding {
  return { level: 'problem', says, ...(set !== undefined && { set }) };
}

function advice(says: string, set?: string): Finding {
  return { ...problem(says, set), level: 'advice' };
}

/** How a conversation went that was asked for as a harness asks: streamed, with tools, options and limits. */
export interface CheckedHarness extends CheckedTools {
  /** The wire of the harness, and one that speaks it. */
  wire: Wire;
  harness: string;
  isTranslated: boolean;
  /** Options that the server does not accept, so that they were left out. */
  leftOut: string[];
}

export interface Found {
  server: { kind: string; version?: string | undefined; parallel?: number | undefined } | undefined;
  /** Undefined if only one wire was to be checked. */
  wires: CheckedWire[] | undefined;
  tools: CheckedTools;
  harnesses: CheckedHarness[];
  speed: CheckedSpeed;
  /** What the server says about the model. `--json` prints it under this name. */
  told: Omit<ServerModel, 'id'>;
  measuredContext: MeasuredContext | undefined;
}

/** Tokens. Less context is too little for harnesses, which send system texts, files and outputs. */
const fewTokens = 16_384;

/** Problems come first. */
export function findingsOf(config: HttpModel, found: Found): Finding[] {
  const all = [
    ...toolFindings(found),
    ...harnessFindings(config, found),
    ...optionFindings(config, found),
    ...streamFindings(found),
    ...wireFindings(config, found),
    ...contextFindings(config, found),
    ...parallelFindings(config, found),
  ];
  return all.toSorted((one, other) => Number(one.level === 'advice') - Number(other.level === 'advice'));
}

function toolFindings({ tools, server, told: reported }: Found): Finding[] {
  if (tools.state === 'works') return [];
  const what = {
    none: 'it called no tool',
    unused: 'it called a tool, but did not use the result',
    malformed: 'it called a tool in a form that is not valid',
    failed: 'a request with tools failed',
  }[tools.state];
  const usual: Readonly<Record<string, string>> = {
    'llama.cpp': 'Start llama-server with --jinja.',
    vLLM: 'Start vllm with --enable-auto-tool-choice and the --tool-call-parser of the model.',
    Ollama: 'Use a model with the capability tools; `ollama show MODEL` lists them.',
  };
  const help =
    reported.tools === false ? 'The server says that this model has no tools.' : usual[server?.kind ?? ''];
  const says = `Tools do not work: ${what}. Harnesses need them.${help === undefined ? '' : ` ${help}`}`;
  return [problem(says)];
}

/** Only what the tools and the wires have not shown already. */
function harnessFindings(config: HttpModel, { tools, harnesses, wires = [] }: Found): Finding[] {
  if (tools.state !== 'works') return [];
  const isDead = (wire: Wire) => wires.some((one) => one.wire === wire && one.state !== 'works');
  const failed = harnesses.filter(
    ({ state, wire, isTranslated }) => state !== 'works' && (isTranslated || !isDead(wire)),
  );
  const working = harnesses.filter(({ state, isTranslated }) => state === 'works' && !isTranslated);
  return failed.map(({ wire, harness, isTranslated, state, reason = '' }) => {
    const how = isTranslated ? `translated from ${wire}` : `over ${wire}`;
    const others = wiresOf(config).filter(
      (one) => one !== wire && working.some((found) => found.wire === one),
    );
    const says = `${harness}, ${how}, does not work: ${harnessProblems[state]}. ${reason}`.trim();
    // Without the wire, its harnesses are translated into one that works.
    return problem(says, !isTranslated && others.length > 0 ? `wire: [${others.join(', ')}]` : undefined);
  });
}

const harnessProblems = {
  works: 'it works',
  none: 'the model called no tool',
  unused: 'the model called a tool, but did not use the result',
  malformed: 'a call of a tool arrived in a form that is not valid',
  failed: 'a streamed request with tools failed',
} as const;

function optionFindings(config: HttpModel, { harnesses }: Found): Finding[] {
  const leftOut = [...new Set(harnesses.flatMap((one) => one.leftOut))];
  const limits = leftOut.flatMap((one) => one.split('<=')[1] ?? []).map(Number);
  const options = leftOut.filter((one) => !one.includes('<='));
  const isSet = (path: string) => config.without.some((rule) => rule === path || path.endsWith(`.${rule}`));
  return present([
    limits.length > 0 &&
      advice(
        'Its server refuses the limit of tokens that harnesses ask for, so each request is sent several times.',
        `maxOutputTokens: ${Math.min(...limits)}`,
      ),
    !options.every(isSet) &&
      advice(
        `Its server does not accept ${options.join(', ')}, so harnesses are answered without.`,
        `without: [${[...new Set([...config.without, ...options])].map(quotedPath).join(', ')}]`,
      ),
  ]);
}

/** Brackets have a meaning in YAML. */
function quotedPath(path: string): string {
  return path.includes('[') ? JSON.stringify(path) : path;
}

function streamFindings({ speed }: Found): Finding[] {
  if (speed.streaming === 'works') return [];
  if (speed.streaming === 'failed')
    return [problem(`Streaming does not work: ${speed.reason ?? 'it broke off'}`)];
  return [advice('Streamed answers arrive in one piece. A proxy before the server may hold them back.')];
}

function wireFindings(config: HttpModel, { wires }: Found): Finding[] {
  if (!wires) return [];
  const configured = wiresOf(config);
  const working = wires.filter(({ state }) => state === 'works').map(({ wire }) => wire);
  const inOrder = [...configured.filter((wire) => working.includes(wire)), ...working];
  const set = `wire: [${[...new Set(inOrder)].join(', ')}]`;
  const dead = wires.filter(({ wire, state }) => configured.includes(wire) && state !== 'works');
  const more = working.filter((wire) => !configured.includes(wire));
  return present([
    ...dead.map(({ wire, state, reason = '' }) => {
      if (state === 'missing')
        return problem(`It is configured with ${wire}, and the server does not speak it.`, set);
      if (state === 'limited')
        return advice(`It is not known whether it speaks ${wire}: it asks to wait. ${reason}`);
      return problem(`It gave no answer over ${wire}: ${reason}`);
    }),
    more.length > 0 &&
      advice(`It also speaks ${more.join(', ')}. Harnesses of these wires then need no translation.`, set),
  ]);
}

function contextFindings(
  config: HttpModel,
  { told: reported, measuredContext: measured, server }: Found,
): Finding[] {
  const { contextWindow: configured } = config;
  const held = measured?.fails
    ? Math.min(measured.holds, reported.contextWindow ?? measured.holds)
    : reported.contextWindow;
  const how = measured?.fails ? 'It holds' : 'The server says that it holds';
  const isKnown = held !== undefined && held > 0;
  const { maxOutputTokens } = reported;
  return present([
    configured !== undefined &&
      configured < fewTokens &&
      problem(
        `contextWindow: ${configured} is too small for most harnesses: their own texts and tools take that much.`,
      ),
    isKnown &&
      configured === undefined &&
      advice(`${how} ${held} tokens, and contextWindow is not set.`, `contextWindow: ${held}`),
    isKnown &&
      configured !== undefined &&
      configured > held &&
      problem(`${how} ${held} tokens, less than contextWindow: ${configured}.`, `contextWindow: ${held}`),
    isKnown &&
      held < fewTokens &&
      problem(`A context of ${held} tokens is too short for most harnesses.${longer()}`),
    measured?.fails?.how === 'cut' &&
      problem('It cuts longer prompts without an error, so an agent forgets its task.'),
    maxOutputTokens !== undefined &&
      config.maxOutputTokens === undefined &&
      advice(
        `It writes up to ${maxOutputTokens} tokens in an answer, and maxOutputTokens is not set.`,
        `maxOutputTokens: ${maxOutputTokens}`,
      ),
  ]);

  function longer(): string {
    const { longestContext } = reported;
    if (longestContext === undefined || held === undefined || longestContext <= held) return '';
    const settings: Readonly<Record<string, string>> = {
      Ollama: 'set OLLAMA_CONTEXT_LENGTH for the server',
      'llama.cpp': 'start llama-server with a larger -c',
      'LM Studio': 'load the model with a longer context',
    };
    const how = settings[server?.kind ?? ''];
    return ` The model could hold ${longestContext}${how === undefined ? '.' : `: ${how}.`}`;
  }
}

function parallelFindings(config: HttpModel, { server }: Found): Finding[] {
  if (server?.parallel === undefined) return [];
  const { parallel } = server;
  const says = `The server works on ${parallel} requests at a time`;
  const set = `maxParallel: ${parallel}`;
  const { maxParallel } = config;
  if (maxParallel === undefined) return [advice(`${says}, and maxParallel is not set.`, set)];
  const most = mostParallel(maxParallel);
  if (most <= parallel) return [];
  return [advice(`${says}, and maxParallel allows ${most}: the others wait there.`, set)];
}
