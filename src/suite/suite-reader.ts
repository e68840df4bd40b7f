import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../base/offsite-error.ts';
import type { Hiding } from './answers.ts';
import { type CaseEnvironment, type EnvironmentSource, noEnvironment } from './environment.ts';
import { BadFile, type FileIssue, positionInText } from './file-issues.ts';
import { type FetchedSources, keyOfSource } from './git/fetch-sources.ts';
import type { PlannedSource } from './git/git-source.ts';
import { type EnvironmentParts, plannedEnvironment } from './load-environment.ts';
import type { CaseSource, SuiteFile } from './suite-file.ts';
import { checkLineEnds, type Text } from './text-source.ts';
import { expandVariables, type Variables } from './variables.ts';
import type { Path, YamlFile } from './yaml-file.ts';

/** Reads what one suite file names, and collects the problems with their places. */
export class SuiteReader {
  readonly issues: FileIssue[] = [];
  readonly source: SuiteFile;
  readonly parts: EnvironmentParts;
  /** What agents must not read: the suite's own file, and the files that grade and solve its cases. */
  readonly own: Pick<Hiding, 'suite' | 'own'>;
  readonly #yaml: YamlFile<SuiteFile>;
  readonly #sources: FetchedSources | undefined;
  readonly #environments = new Map<EnvironmentSource, CaseEnvironment>();

  constructor(
    yaml: YamlFile<SuiteFile>,
    parts: EnvironmentParts,
    own: SuiteReader['own'],
    sources?: FetchedSources | undefined,
  ) {
    this.#sources = sources;
    this.source = yaml.value;
    this.parts = parts;
    this.own = own;
    this.#yaml = yaml;
  }

  readonly report = (path: Path, message: string): void => {
    this.issues.push(this.#yaml.issue(path, message));
  };

  /** For a part of the suite that several cases share. */
  reportOnce(path: Path, message: string): void {
    const issue = this.#yaml.issue(path, message);
    if (!this.issues.some((known) => isDeepStrictEqual(known, issue))) this.issues.push(issue);
  }

  /** A text of the suite, or of the file that it names. Empty, with a problem, if that cannot be read. */
  text(text: Text, path: Path): string {
    if (typeof text === 'string') return text;
    const { files, folder } = this.parts;
    return this.attempt(path, '', () => files.text(resolve(folder, text.file))) ?? '';
  }

  /**
   * Returns what `read` returns. If `read` throws, reports the error and returns undefined.
   *
   * @param name of the file that `read` reads, for the message
   */
  attempt<Result>(path: Path, name: string, read: () => Result): Result | undefined {
    try {
      return read();
    } catch (error) {
      if (error instanceof BadFile) this.issues.push(...error.issues);
      else this.report(path, name === '' ? messageOf(error) : `${name}: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** Reads a text and checks that every `{{name}}` in it is a variable of the case. */
  script(text: Text, variables: Variables, path: Path): string {
    const source = this.text(text, path);
    this.refuseUnknownNames(source, variables, path, '', typeof text === 'object' ? text.file : undefined);
    return source;
  }

  /** The same for a script that bash runs. */
  bash(text: Text, variables: Variables, path: Path): string {
    const source = this.script(text, variables, path);
    this.attempt(path, typeof text === 'object' ? text.file : '', () => checkLineEnds(source));
    return source;
  }

  refuseUnknownNames(text: string, variables: Variables, path: Path, where: string, file?: string): void {
    expandVariables(text, variables, (name, offset) => {
      const message = `{{${name}}} is not a variable${where}; write \\{{ for literal braces`;
      if (file === undefined) this.report(path, message);
      else
        this.issues.push({
          file: join(this.parts.folder, file),
          ...positionInText(text, offset),
          path: '',
          message,
        });
    });
  }

  /** @param list the path of the list whose items have the names */
  refuseRepeated(list: Path, names: string[], key: string): void {
    names.forEach((name, index) => {
      const first = names.indexOf(name);
      if (name !== '' && first < index)
        this.report(
          [...list, index, key],
          `"${name}" is already used by ${this.issueAt([...list, first]).path}`,
        );
    });
  }

  /**
   * A case's environment, or the suite's if the case has none. Each is read once.
   *
   * @param path the case's
   */
  environment(own: EnvironmentSource | undefined, path: Path): CaseEnvironment {
    const source = own ?? this.source.environment;
    if (!source) return noEnvironment;
    const at = own ? [...path, 'environment'] : ['environment'];
    const known = this.#environments.get(source);
    if (known) return known;
    const report = (keys: string | string[], issue: string | FileIssue) =>
      typeof issue === 'string' ? this.report([...at, keys].flat(), issue) : this.issues.push(issue);
    const placeOf = (...keys: string[]) => this.placeOf([...at, ...keys]);
    const environment = plannedEnvironment(source, { ...this.parts, placeOf, report });
    this.#environments.set(source, environment);
    return environment;
  }

  /** The repository of a case, or the suite's if the case has no source. Undefined for none. */
  repository(own: CaseSource['source'], path: Path): PlannedSource | undefined {
    const source = own ?? this.source.source;
    if (!source || !('git' in source)) return undefined;
    const at = own ? [...path, 'source'] : ['source'];
    const fetched = this.#sources?.byKey.get(keyOfSource(source));
    if (fetched && 'commit' in fetched) return fetched;
    this.report([...at, fetched?.key ?? 'git'], fetched?.problem ?? 'this command takes no git sources');
    return undefined;
  }

  /** Where something of the suite is. */
  issueAt(path: Path): Omit<FileIssue, 'message'> {
    const { message: _, ...at } = this.#yaml.issue(path, '');
    return at;
  }

  /** `suite.yaml:3:5` */
  placeOf(path: Path): string {
    const { file, line, column } = this.issueAt(path);
    return `${file}:${line}:${column}`;
  }
}
