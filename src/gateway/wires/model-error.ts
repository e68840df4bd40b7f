import { modelAnswers } from '../../bounds/model.ts';
import { isObject, list, member, parsed, shortText, words } from './lenient.ts';

/** What a model's error says, whatever its wire and its server. */
export interface ModelError {
  /** The server's own words. Undefined if there is no error, or it has none. */
  message: string | undefined;
  /** Its code and type in the provider's own words, the most exact first. */
  codes: readonly string[];
  /** The paths of the members of the request that it names as wrong, as it writes them. */
  parameters: readonly string[];
  /** Whether the model itself failed, whatever the request. */
  isOverload: boolean;
  /** Whether a code or type says that the request is wrong. */
  namesRequest?: boolean;
}

const noError: ModelError = { message: undefined, codes: [], parameters: [], isOverload: false };

/** Reads an error object, or the string that some servers send instead. */
export function readError(error: unknown): ModelError {
  // Most events of a stream have none.
  if (error === undefined || error === null) return noError;
  const code = member(error, 'code');
  const name = shortText(code);
  const [type, status] = [member(error, 'type'), member(error, 'status')].map(shortText);
  const codes = [name, type, status].filter((one) => one !== undefined);
  const message = wordsIn(error) ?? name;
  return {
    message: message?.slice(0, modelAnswers.bytes.errorMessage),
    codes,
    parameters: parametersIn(error, message ?? ''),
    isOverload: [code, ...codes].some(isOverload),
    ...([code, ...codes].some(isOfRequest) && { namesRequest: true }),
  };
}

/** Reads the body of an answer that failed: `{"error": ...}`. Some servers send the error alone. */
export function readErrorBody(document: unknown): ModelError {
  // Google's OpenAI-like API sends a list of one.
  const [only] = list(document);
  if (only !== undefined) return readErrorBody(only);
  const alone = readError(document);
  const error = member(document, 'error');
  if (error === undefined || error === null || typeof error === 'string') return alone;
  const inside = readError(error);
  return { ...inside, message: inside.message ?? alone.message };
}

/** Reads the body of an answer that failed, whatever it is: a document, plain text or a web page. */
export function readErrorText(given: Buffer | string): ModelError {
  const body = given.toString('utf8');
  const error = readErrorBody(parsed(body));
  if (error.message !== undefined) return error;
  // The words of a document of an unknown form are the document itself.
  const message = pageTitle(body) ?? excerpt(body);
  return { ...error, message: message === '' ? undefined : message };
}

/** The title of a web page, marked as that; undefined if the text is no web page. */
export function pageTitle(body: string): string | undefined {
  if (!/^\s*(<!--[\s\S]*?-->\s*)*<(!doctype\s+html|html|head|body|title|h1)\b/i.test(body)) return undefined;
  const [, title, heading] = /<title[^>]*>([^<]*)|<h1[^>]*>([^<]*)/i.exec(body) ?? [];
  const words = excerpt(title ?? heading ?? '') || excerpt(withoutTags(body)) || 'without words';
  return `a web page: ${words}`;
}

function withoutTags(page: string): string {
  return page.replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ');
}

function excerpt(body: string): string {
  return body
    .slice(0, 10 * modelAnswers.bytes.errorMessage)
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, modelAnswers.bytes.errorMessage);
}

/** Members in which servers put their words, the most telling first. */
const telling = words(`
  error message detail msg errors error_message errorMessage error_description error_msg status_msg base_resp
  description reason faultstring fault title Message cause`);

/** The words of an error: a string, the first telling member of an object, or those of a list's items. */
function wordsIn(error: unknown, depth = 0): string | undefined {
  if (typeof error === 'string') return error.trim() === '' ? undefined : error;
  if (depth > 6) return undefined;
  if (Array.isArray(error)) {
    const all = error.slice(0, 5).flatMap((one) => wordsIn(one, depth + 1) ?? []);
    return all.length === 0 ? undefined : all.join('; ');
  }
  if (!isObject(error)) return undefined;
  // Amazon's servers name an error by its class.
  const classes = Object.keys(error).filter((name) => /[a-z](Exception|Error)$/.test(name));
  const [found, more] = [...telling, ...classes].flatMap((name) => wordsIn(error[name], depth + 1) ?? []);
  if (found === undefined) return undefined;
  const place = placeOf(error.loc);
  if (place !== undefined) return `${place}: ${found}`;
  // Some servers have only the name of the status in `error`.
  return typeof error.error === 'string' && more !== undefined ? `${found}: ${more}` : found;
}

/** The path of a `loc` of FastAPI; its first part is the part of the request. */
function placeOf(loc: unknown): string | undefined {
  const parts = list(loc).filter((part) => typeof part === 'string' || typeof part === 'number');
  if (parts[0] === 'body') parts.shift();
  return parts.length === 0 ? undefined : parts.slice(0, 20).join('.');
}

/** Members of errors that name a member of the request. */
const naming = ['param', 'parameter', 'field'];
/** A `loc` that a server has put into its text, as JSON or as Python writes it. */
const quotedLoc = /["']loc["']:\s*[([]([^)\]]{1,300})[)\]]/g;

function parametersIn(error: unknown, message: string): string[] {
  const found: string[] = [];
  const look = (value: unknown, depth: number) => {
    if (depth > 6 || found.length > 20) return;
    if (Array.isArray(value)) for (const one of value.slice(0, 20)) look(one, depth + 1);
    if (!isObject(value)) return;
    for (const [name, inside] of Object.entries(value).slice(0, 50)) {
      if (naming.includes(name) && typeof inside === 'string') found.push(inside);
      // What the server repeats of the request is no part of its words.
      else if (name !== 'input' && name !== 'ctx' && name !== 'loc') look(inside, depth + 1);
    }
    const place = placeOf(value.loc);
    if (place !== undefined) found.push(place);
  };
  look(error, 0);
  for (const [, quoted = ''] of message.slice(0, 20 * modelAnswers.bytes.errorMessage).matchAll(quotedLoc))
    found.push(placeOf([...quoted.matchAll(/["']([^"']+)["']|(\d+)/g)].map(([, a, b]) => a ?? b)) ?? '');
  return found.filter((path) => path !== '' && !/^(none|null)$/i.test(path));
}

function isOfRequest(code: unknown): boolean {
  return /^(400|413|422)$|invalid|bad_?request|unprocessable|context|too_(long|large)/i.test(String(code));
}

/** The codes and types that providers' APIs use for their own failures. */
const ownFailures: ReadonlySet<unknown> = words(`
  overloaded_error api_error rate_limit_error timeout_error server_error
  rate_limit_exceeded insufficient_quota`);

/** Some servers use an HTTP status as the code. */
function isOverload(code: unknown): boolean {
  return ownFailures.has(code) || Number(code) === 429 || Number(code) >= 500;
}
