import { modelAnswers } from '../../bounds/model.ts';
import type { Upstream, UpstreamAnswer, UpstreamRequest } from '../answer.ts';
import { isContextFull } from '../chat/model-errors.ts';
import { readAhead } from '../metering.ts';
import { beginningOf } from '../upstream-http.ts';
import { type ModelError, readErrorText } from '../wires/model-error.ts';
import type { RefusedOptions } from './refused-options.ts';
import {
  type Fitted,
  isEssential,
  optionsOf,
  type RequestOption,
  withoutOptions,
} from './request-options.ts';

/**
 * Statuses that say nothing about what is in a request: who asks, how often, or that no server took it. All
 * other failures may be refusals: servers also use 403, 404, 413 and 500.
 */
const otherFailures: ReadonlySet<number> = new Set([401, 402, 407, 408, 425, 429, 502, 503, 504, 529]);

/** A refusal, and the answer that carries it. */
interface Refusal {
  answer: UpstreamAnswer;
  error: ModelError;
  /** Ends the answer, if it is not passed on. */
  discard(): Promise<void>;
}

/**
 * An upstream that asks for what its server accepts. If the server refuses a request and names an option of
 * it (see `request-options.ts`), the request is sent again without that option. If that succeeds, the option
 * is left out from then on. Otherwise the answer is the first refusal, since it is about what was asked for.
 *
 * All requests to a server take this way: those of harnesses, of this process and of checks.
 */
export function fittedUpstream(upstream: Upstream, refused: RefusedOptions): Upstream {
  return {
    async send(request, signal) {
      const known = refused.of(request.wire);
      const fitted = (more: readonly string[]) => withoutOptions(request, [...known, ...more]);
      const ask = async ({ body, leftOut }: Fitted) => {
        const answer = await upstream.send({ ...request, body }, signal);
        return { ...answer, ...(leftOut.length > 0 && { leftOut }) };
      };
      const asked = fitted([]);
      const first = await refusalIn(request, await ask(asked));
      if ('status' in first) return first;
      const refusals = [wordsOf(first)];
      const search = searchFor(first, request, refused, fitted);
      let attempt = search.next();
      if (attempt !== undefined && first.answer.status >= 500) {
        // A failure of the moment may name an option by chance. It is not about the request if it passes.
        const again = await refusalIn(request, await ask(asked));
        if ('status' in again || !isSame(first, again)) {
          await first.discard();
          return 'status' in again ? again : again.answer;
        }
        await again.discard();
      }
      while (attempt !== undefined && refusals.length < modelAnswers.count.fits) {
        const next = await refusalIn(request, await ask(fitted(attempt)));
        // A limit that does not fit beside the conversation is refused in the same words.
        const isOther =
          'status' in next ||
          (!isSame(first, next) && isContextFull(next.error.codes, next.error.message ?? ''));
        if (isOther) {
          await first.discard();
          if ('status' in next && next.status < 300) refused.learn(request.wire, attempt);
          return { ...('status' in next ? next : next.answer), refusals };
        }
        await next.discard();
        refusals.push(wordsOf(next));
        attempt = search.next(next);
      }
      return { ...first.answer, refusals: refusals.slice(1) };
    },
  };
}

/** The answer, or the refusal that it is. Its body can still be read. */
async function refusalIn(
  { wire }: UpstreamRequest,
  answer: UpstreamAnswer,
): Promise<UpstreamAnswer | Refusal> {
  const { status, headers } = answer;
  // Some servers answer a whole request with a document of 200 that is an error. A stream does not wait here.
  const isDocument = status < 300 && /^application\/([\w.-]+\+)?json\b/.test(String(headers['content-type']));
  if (!isDocument && (status < 400 || otherFailures.has(status))) return answer;
  const { read, whole, discard } = await beginningOf(answer.body, isDocument ? 'first' : 'judged');
  const passed = { ...answer, body: whole() };
  if (isDocument && readAhead(wire, read).failure === undefined) return passed;
  return { answer: passed, error: readErrorText(read), discard };
}

function wordsOf({ answer, error }: Refusal): string {
  return `it answered ${answer.status}: ${error.message ?? 'nothing'}`;
}

/**
 * Chooses what to leave out, one option after another. An option whose absence changes the refusal stays out.
 * One whose absence changes nothing was not the reason: it is asked for again. If no single option was the
 * reason, all that were named are left out at once.
 */
function searchFor(
  first: Refusal,
  request: UpstreamRequest,
  refused: RefusedOptions,
  fitted: (rules: readonly string[]) => Fitted,
) {
  let kept: readonly string[] = [];
  let refusal = first;
  let vain: (readonly string[])[] = [];
  let tried: readonly string[] | undefined;
  return {
    /** The rules to try next; undefined if there is nothing more to try. `answer`: the last one. */
    next(answer?: Refusal): readonly string[] | undefined {
      if (answer && tried) {
        if (isSame(refusal, answer)) vain.push(tried);
        else {
          kept = [...kept, ...tried];
          refusal = answer;
          vain = [];
        }
      }
      const asked = { ...request, body: fitted(kept).body };
      const options = optionsOf(asked).filter((option) => refused.mayLearn(option));
      const all = namedOptions(refusal.error, options).flatMap(changesFor);
      const isVain = (rules: readonly string[]) => vain.some((one) => one.join() === rules.join());
      const together = [...new Set(vain.flat())];
      tried = all.find((rules) => !isVain(rules));
      if (!tried && vain.length > 1 && !isVain(together)) tried = together;
      return tried && [...kept, ...tried];
    },
  };
}

/**
 * What is left out is left out with its value: the server may accept another value, and a request with an odd
 * one must not change what others ask for. Another name for the same loses nothing.
 */
function changesFor({ changes, value, aliases }: RequestOption): RequestOption['changes'] {
  if (value === undefined) return changes;
  return changes.map((rules) => {
    const isRename = aliases.length > 0 && rules.length === 1 && changes.length > 1;
    return isRename ? rules : rules.map((rule) => (/=/.test(rule) ? rule : `${rule}=${value}`));
  });
}

/** Servers put numbers of requests and times into their words. */
function isSame(one: Refusal, other: Refusal): boolean {
  const words = ({ error }: Refusal) => (error.message ?? '').replace(/[\da-f-]{8,}|\d+/gi, '');
  return one.answer.status === other.answer.status && words(one) === words(other);
}

/**
 * The options of a request that a refusal names, in the order in which to try without them: those at a path
 * that the server names, then forms of the conversation that its words are about, options that its words
 * quote, those that its words contain, and those of a topic that its words are about. Servers write names in
 * many ways, so case and separators do not count.
 */
function namedOptions(
  { parameters, message = '' }: ModelError,
  options: readonly RequestOption[],
): RequestOption[] {
  const atPaths = parameters.flatMap((path) => atPath(path, options));
  // What a template says about the conversation contains words that are names of options too.
  const forms = options.filter(({ refusal }) => refusal?.test(message));
  const quotedOf = (some: readonly RequestOption[]) =>
    [...message.matchAll(/["'`]([\w.[\]-]{1,100})["'`]/g)].flatMap(([, name = '']) =>
      some.filter((option) => namesOf(option).some((one) => folded(one) === folded(name))),
    );
  // A server that names what the request means is only about its annotations, whatever its words contain.
  if (atPaths.length === 0 && parameters.some(isOfEssential))
    return [...new Set([...forms, ...quotedOf(options.filter(({ path }) => path.includes('[]')))])];
  const all = [...atPaths, ...forms, ...quotedOf(options), ...contained(message, options)];
  return [...new Set([...all, ...ofTopic(message, options)])];
}

function isOfEssential(path: string): boolean {
  return isEssential(segmentsOf(path)[0] ?? '');
}

/** The option at a path of the request, or the one that the path leads into. */
function atPath(path: string, options: readonly RequestOption[]): RequestOption[] {
  const named = segmentsOf(path).map(folded);
  const ofPath = options.filter((option) => {
    const own = segmentsOf(option.path).map(folded);
    const [top = ''] = own;
    // A member of a tool's schema may have the name of an option.
    if (own.length === 1 && named.length > 1 && named[0] !== top && isEssential(segmentsOf(path)[0] ?? ''))
      return false;
    return [own, ...option.aliases.map((alias) => [folded(alias)])].some((names) => isIn(names, named));
  });
  // The longest path that fits is the most exact.
  const longest = Math.max(...ofPath.map((option) => segmentsOf(option.path).length), 0);
  return ofPath.filter((option) => segmentsOf(option.path).length === longest);
}

/** Whether all names are in `path`, in their order. Servers put names of their own types between them. */
function isIn(names: readonly string[], path: readonly string[]): boolean {
  let next = 0;
  for (const segment of path) if (segment === names[next]) next += 1;
  return next === names.length;
}

function segmentsOf(path: string): string[] {
  return path.split(/[.[\]/]+/).filter((segment) => segment !== '' && !/^\d+$/.test(segment));
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z\d]/g, '');
}

function namesOf({ path, name, aliases }: RequestOption): string[] {
  return [path, name, ...aliases];
}

function contained(message: string, options: readonly RequestOption[]): RequestOption[] {
  return options
    .map((option) => ({ option, at: positionIn(message, option) }))
    .filter(({ at }) => at !== -1)
    .toSorted((one, other) => one.at - other.at)
    .map(({ option }) => option);
}

function positionIn(message: string, { name, aliases }: RequestOption): number {
  const found = [name, ...aliases].map((one) => {
    const parts = one.replace(/([a-z])([A-Z])/g, '$1_$2').split(/[^a-zA-Z\d]+/);
    return message.search(new RegExp(`(?<![\\w])${parts.join('[\\s_-]*')}(?![\\w])`, 'i'));
  });
  const positions = found.filter((at) => at !== -1);
  return positions.length === 0 ? -1 : Math.min(...positions);
}

/** What servers call by another word than the member that asks for it. */
const topics: readonly { words: RegExp; paths: RegExp }[] = [
  {
    words: /\b(think(ing)?|reason(ing)?|thoughts?|effort)\b/i,
    paths: /think|reason|effort/i,
  },
  { words: /\bparallel\b|\bsingle tool/i, paths: /parallel/i },
  {
    words: /\b(json|schema|structured|guided|grammar)\b/i,
    paths: /response_?(format|mime|schema|json)|(^|\.)format$/i,
  },
  { words: /\btool\b.*\bcho(ice|ose)|\bforce/i, paths: /^tool_choice$/ },
  {
    words: /\bcompletion\b|(output|new|generated?)[ _]tokens\b/i,
    paths: /^(generationConfig\.)?max_?(completion_?|output_?)?tokens$/i,
  },
];

function ofTopic(message: string, options: readonly RequestOption[]): RequestOption[] {
  const told = topics.filter(({ words }) => words.test(message));
  const found = options.filter(({ path }) => told.some(({ paths }) => paths.test(path)));
  // What asks for it comes before what the conversation has of it.
  return found.toSorted((one, other) => Number(one.path.includes('[]')) - Number(other.path.includes('[]')));
}
