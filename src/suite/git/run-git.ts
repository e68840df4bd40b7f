import { type ExecaError, execa } from 'execa';
import { signalGroup } from '../../base/host-program.ts';
import { inputError, OffsiteError } from '../../base/offsite-error.ts';
import { gitSources } from '../../bounds/suite.ts';
import type { SuiteCommit } from '../../record/suite-commit.ts';
import { repositoryAbove } from '../find-config.ts';
import { withoutCredentials } from './git-source.ts';

export interface GitCall {
  args: readonly string[];
  /** The user's environment. */
  env: NodeJS.ProcessEnv;
  /**
   * What git may talk to. For `remote`, the user's own settings hold, with their credential helpers, proxies
   * and certificates. For `stranger`, a remote repository without any of these but the variables of the
   * environment for proxies and certificates. For `local`, only another repository of this machine. For
   * `nothing`, no settings.
   */
  reach: 'remote' | 'stranger' | 'local' | 'nothing';
  timeoutMs: number;
  signal: AbortSignal;
  /** The file that git reads; none by default. */
  input?: string | undefined;
  /** Further variables of git for this call. */
  set?: Record<string, string>;
  /** Called with the last line that git prints on its progress. */
  onProgress?: (line: string) => void;
}

const protocols = {
  remote: 'file:git:http:https:ssh',
  stranger: 'git:http:https',
  local: 'file',
  nothing: '',
};

/**
 * With these settings, git runs nothing from a repository, and fetches only what is asked for. They override
 * all files of settings.
 */
const settings = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.logAllRefUpdates': 'false',
  'protocol.ext.allow': 'never',
  'fetch.recurseSubmodules': 'no',
  'submodule.recurse': 'false',
  'fetch.writeCommitGraph': 'false',
  // What is fetched stays in a pack. Afterwards, everything but the commit is left out of the pack.
  'fetch.unpackLimit': '1',
  'transfer.bundleURI': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
};

/** Git's variables that say how the user reaches repositories. Git's other variables are not passed on. */
const userVariable =
  /^GIT_(ASKPASS|SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_\w+|HTTP_\w+|EXEC_PATH|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+))$/;

/**
 * Variables that hold credentials or name what has some. Git reads `.netrc` in HOME, and settings in
 * XDG_CONFIG_HOME.
 */
const holdsCredentials =
  /^(GIT_(?!SSL_CAINFO$|SSL_CAPATH$|PROXY_SSL_CAINFO$|EXEC_PATH$).*|SSH_.*|HOME|XDG_CONFIG_HOME|NETRC)$/;

/**
 * Runs git to its end, without a shell and without a terminal, and returns what it prints. It never asks a
 * person anything. Throws `GIT_FAILED`, an `input` error with what git said, without credentials.
 */
export async function runGit(call: GitCall): Promise<Buffer> {
  const { timeoutMs, signal, input, onProgress } = call;
  signal.throwIfAborted();
  const { command, args, env } = gitCommand(call);
  const running = execa(command, args, {
    env,
    extendEnv: false,
    stdin: input === undefined ? 'ignore' : { file: input },
    encoding: 'buffer',
    reject: false,
    // A patch without its last newline is corrupt.
    stripFinalNewline: false,
    maxBuffer: { stdout: gitSources.bytes.list, stderr: gitSources.bytes.messages },
    // A session of its own: its helpers have no terminal to ask on, and can be ended together.
    detached: true,
  });
  const end = () => signalGroup(running.pid, 'SIGKILL');
  const late = setTimeout(end, timeoutMs);
  signal.addEventListener('abort', end, { once: true });
  let progress = '';
  running.stderr?.on('data', (chunk: Buffer) => {
    progress = (progress + chunk.toString('latin1')).slice(-200);
    const line = progress.split(/[\r\n]+/).findLast((text) => /\d+%|\d+ /.test(text));
    if (line) onProgress?.(line);
  });
  try {
    const result = await running;
    signal.throwIfAborted();
    if (!result.failed) return Buffer.from(result.stdout);
    throw gitFailure(result, timeoutMs);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', end);
  }
}

/** The command line and the environment of a call. */
export function gitCommand({ args, env, reach, set = {} }: Pick<GitCall, 'args' | 'env' | 'reach' | 'set'>) {
  const given = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const kept = Object.entries(env).filter(([name]) =>
    reach === 'stranger' ? !holdsCredentials.test(name) : !name.startsWith('GIT_') || userVariable.test(name),
  );
  const isApart = reach === 'nothing' || reach === 'stranger';
  const own = isApart ? { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' } : {};
  return {
    command: 'git',
    args: [...given, ...args],
    env: {
      ...Object.fromEntries(kept),
      ...own,
      // Without HOME, `.netrc` would be read in the folder of the user's account.
      ...(reach === 'stranger' && { HOME: '/dev/null' }),
      GIT_ALLOW_PROTOCOL: protocols[reach],
      GIT_NO_LAZY_FETCH: '1',
      GIT_TERMINAL_PROMPT: '0',
      SSH_ASKPASS_REQUIRE: 'never',
      LC_ALL: 'C.UTF-8',
      ...set,
    },
  };
}

type Failed = Pick<ExecaError<{ encoding: 'buffer' }>, 'exitCode' | 'isMaxBuffer' | 'code' | 'signal'> & {
  stderr?: Uint8Array;
  originalMessage?: string;
};

function gitFailure(result: Failed, timeoutMs: number): OffsiteError {
  if (result.code === 'ENOENT') return failed('git is not on the PATH');
  if (result.isMaxBuffer) return failed('git printed too much output');
  if (result.exitCode === undefined)
    return failed(`git did not finish within ${timeoutMs / 1000} s, or was ended`);
  const said = Buffer.from(result.stderr ?? [])
    .toString('utf8')
    .split(/[\r\n]+/)
    .filter((line) => /^(fatal|error|remote|ssh|git|ERROR|Permission|Host)/.test(line.trim()))
    .slice(-saidLines);
  // The other side's error, and git's own with the same words.
  const once = new Map(
    said.map((line) => [line.replace(/^((fatal|error|remote error):|git|\s)+/, ''), line]),
  );
  const reason = said.length === 0 ? `it exited with ${result.exitCode}` : [...once.values()].join(' / ');
  return failed(`git said: ${withoutCredentials(reason)}`);
}

const saidLines = 4;

export function failed(message: string, code: GitFailure = 'GIT_FAILED'): OffsiteError {
  return inputError(code, message);
}

/** `GIT_REF_MISSING`: the repository answers, and does not have the ref that was asked for. */
export type GitFailure = 'GIT_FAILED' | 'GIT_REF_MISSING';

/** How git and the hosts of repositories report that they do not have a commit. */
const refMissing = /not our ref|remote ref|unadvertised object|not a valid object|did not contain/;

export function kindOfFailure(error: unknown): GitFailure | undefined {
  if (!(error instanceof OffsiteError)) return undefined;
  if (error.code === 'GIT_REF_MISSING') return error.code;
  if (error.code !== 'GIT_FAILED') return undefined;
  return refMissing.test(error.message) ? 'GIT_REF_MISSING' : error.code;
}

/** Milliseconds that git gets. Results without a commit are better than a run that waits. */
const timeoutMs = 10_000;

/**
 * The commit of the repository that a folder is in, and whether the folder has changes. Undefined if there is
 * no repository, no commit in it, or no git that reads it.
 *
 * @param except paths in the folder whose changes do not count
 */
export async function commitOf(
  folder: string,
  { env, signal }: { env: NodeJS.ProcessEnv; signal: AbortSignal },
  except: readonly string[] = [],
): Promise<SuiteCommit | undefined> {
  if (repositoryAbove(folder) === undefined) return undefined;
  const git = async (args: string[], own: string[] = []) => {
    const call = { args: [...own, '-C', folder, ...args], env, reach: 'local' as const, timeoutMs, signal };
    return (await runGit(call)).toString('utf8').trimEnd();
  };
  try {
    const id = await git(['rev-parse', '--verify', 'HEAD']);
    const others = except.map((path) => `:(exclude,literal)${path}`);
    const changes = await git([...statusArgs, ...others], await withoutFilters(git));
    return { id, dirty: changes !== '' };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}

/** Files that a repository ignores do not count, and nothing runs in its submodules. */
const statusArgs = ['status', '--porcelain', '--ignore-submodules=dirty', '--no-renames', '--', '.'];

/** Settings with which the repository's own filters, which are programs, do not run. */
async function withoutFilters(git: (args: string[]) => Promise<string>): Promise<string[]> {
  const pattern = String.raw`^filter\..*\.(clean|process)$`;
  const list = ['config', '--local', '--includes', '--name-only', '--get-regexp', pattern];
  // It ends with 1 if there are none.
  const found = await git(list).catch((error: unknown) => {
    if (error instanceof OffsiteError) return '';
    throw error;
  });
  return found.split('\n').flatMap((key) => (key === '' ? [] : ['-c', `${key}=`]));
}
