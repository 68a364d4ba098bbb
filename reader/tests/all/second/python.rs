//! One Python process that runs many commands of the second reader: starting it takes longer than most commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reference");

/// The Python script. It reads one command per line, with tabs between words, and answers with status, output and
/// errors. It adds the commands `fields`, `epoch` and `subset`, which the second reader's command line does not have.
const DRIVER: &str = r#"
import contextlib, io, json, sys, traceback, zlib
sys.path.insert(0, sys.argv[1])
import grain_reader

def fields(path):
    dataset = grain_reader.open(path)
    for i in range(len(dataset)):
        print(*(f"{name}={'none' if part is None else f'{len(part)}:{zlib.crc32(part):08x}'}"
                for name, part in dataset.fields(i).items()))
    return 0

def epoch(*words):
    asked = json.loads(words[-1])
    batches = grain_reader.open_all(words[:-1]).order(**asked["order"]).batches(**asked["batches"])
    places = [list(batches.positions(k)) for k in range(len(batches))]
    print(json.dumps({"steps": list(batches), "positions": places,
                      "repeats": [[batches.order.repeat(p % batches.order.n) for p in step] for step in places],
                      "states": [batches.state_after(k) for k in range(len(batches) + 1)]}))
    return 0

def subset(*words):
    print(*grain_reader.open_all(words[:-1]).subset(json.loads(words[-1])))
    return 0

OWN = {"fields": fields, "epoch": epoch, "subset": subset}
sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
for line in sys.stdin:
    words = line[:-1].split("\t")
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = OWN[words[0]](*words[1:]) if words[0] in OWN else grain_reader.main(words)
        except grain_reader.GrainError as error:
            status = 2
            print(error, file=sys.stderr)
        except SystemExit as error:
            status = error.code
        except BaseException:
            status = -1
            traceback.print_exc()
    out, err = out.buffer.getvalue(), err.getvalue().encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(b"%d %d %d\n" % (status, len(out), len(err)) + out + err)
    sys.stdout.buffer.flush()
"#;

/// The words of a command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question(Vec<u8>);

impl Question {
    pub(crate) fn new(command: &str, path: &Path) -> Self {
        Self(command.as_bytes().to_vec()).word(path.as_os_str().as_encoded_bytes())
    }

    pub(crate) fn word(mut self, word: impl AsRef<[u8]>) -> Self {
        assert!(!word.as_ref().iter().any(|byte| b"\t\n\r".contains(byte)), "a word that the driver would cut");
        self.0.push(b'\t');
        self.0.extend(word.as_ref());
        self
    }

    pub(crate) fn option(self, name: &str, value: impl ToString) -> Self {
        self.word(name).word(value.to_string())
    }
}

/// The result of a command. Status -1 is an exception that the reader did not handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Answer {
    /// The output of a command that must succeed.
    pub(crate) fn success(self) -> Vec<u8> {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    pub(crate) fn lines(self) -> Vec<String> {
        String::from_utf8(self.success()).unwrap().lines().map(str::to_owned).collect()
    }
}

pub(crate) struct Python {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Python {
    pub(crate) fn start() -> Self {
        let mut command = python3();
        command.args(["-c", DRIVER, REFERENCE]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = spawned(command.spawn());
        let (questions, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, questions, answers: BufReader::new(answers) }
    }

    pub(crate) fn ask(&mut self, question: &Question) -> Answer {
        self.questions.write_all(&question.0).unwrap();
        self.questions.write_all(b"\n").unwrap();
        let mut head = String::new();
        self.answers.read_line(&mut head).unwrap();
        let numbers: Vec<i32> = head.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [status, stdout_len, stderr_len] = numbers[..] else { panic!("python3 answered {head:?}") };
        let stdout = self.bytes(stdout_len);
        let stderr = String::from_utf8(self.bytes(stderr_len)).unwrap();
        Answer { status, stdout, stderr }
    }

    /// Runs the reader as a user does, in a separate process.
    pub(crate) fn run_alone(question: &Question) -> Answer {
        let mut command = python3();
        command.arg(Path::new(REFERENCE).join("grain_reader.py"));
        command.args(std::str::from_utf8(&question.0).unwrap().split('\t'));
        let output = spawned(command.output());
        let stderr = String::from_utf8(output.stderr).unwrap();
        Answer { status: output.status.code().unwrap(), stdout: output.stdout, stderr }
    }

    fn bytes(&mut self, len: i32) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        self.answers.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The process may have ended already, after a failure that has been reported.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn python3() -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn spawned<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the tests of the second reader need python3, which did not start: {error}"))
}
