import { z } from 'zod';
import { NonEmpty } from '../text-source.ts';

/** The schema of `source:`, for the whole suite or for one case. */

/**
 * What git itself does not allow in the names of refs, and a dash at the beginning, which git would read as
 * an option.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const notARef = /^[-.]|[\s~^:?*[\\\u0000-\u001f\u007f]|\.\.|@\{|\/\/|\/$|^$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const control = /[\u0000-\u001f\u007f]/;

export const GitSource = z.strictObject({
  git: NonEmpty.refine((url) => !control.test(url), 'expected a URL or a path without control characters')
    .refine((url) => !url.startsWith('-'), 'expected a URL or a path; this begins with a dash')
    .refine((url) => !/^[\w+.-]+::/.test(url), 'expected a URL or a path; git helpers are not run')
    .refine(
      (url) => !/^[\w+.-]+:\/\//.test(url) || /^(https?|ssh|git|file):\/\//.test(url),
      'expected a URL of https, http, ssh, git or file',
    )
    .describe('A URL, or the path of a repository, relative to this file.'),
  ref: z
    .string()
    .refine((ref) => !notARef.test(ref), 'expected a branch, a tag or a whole commit id')
    .optional()
    .describe("A branch, a tag or a whole commit id. Default: the repository's HEAD."),
  history: z
    .enum(['commit', 'none'])
    .default('commit')
    .describe('commit: a repository with this one commit (default). none: only its files, without .git.'),
  leaveOut: z
    .array(
      NonEmpty.refine((glob) => !/^[/:]|(^|\/)\.\.?(\/|$)/.test(glob) && !control.test(glob), {
        error: 'expected a path or a glob in the repository, such as docs/answers or **/*.key',
      }),
    )
    .default([])
    .describe(
      'Files and folders that the workspace does not get, as globs, besides the folder of the suite.',
    ),
});
export type GitSource = z.infer<typeof GitSource>;

/** A source whose commit is known and in the data folder. */
export interface PlannedSource {
  /** Without user name and password. */
  url: string;
  ref: string | undefined;
  /** The id of the commit. Later runs of the same batch use the same one. */
  commit: string;
  /** The id of the commit that takes its place in the sandbox, if files of it were left out. */
  rebuilt?: string | undefined;
  history: GitSource['history'];
  /** The absolute path of a bare repository that holds the sandbox's commit and no other. */
  repository: string;
}

/** A remote repository, or the absolute path of one on this machine. */
export type Repository = { kind: 'remote'; url: string } | { kind: 'local'; path: string };

/** `https://user:password@host/x` as `https://***@host/x`, wherever it is in a text. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/([a-z][\w+.-]*:\/\/)[^/\s@]*(?:@[^/\s@]*)*@/gi, '$1***@');
}
