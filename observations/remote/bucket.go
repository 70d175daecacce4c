package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// partSize is how many bytes of a recording are uploaded at once; S3 takes at least 5 MiB and at most 10,000 parts.
const partSize = 8 << 20

// Scheme begins the URL of a bucket.
const Scheme = "s3://"

// Bucket is where the bytes of large observations are: the objects below a prefix.
type Bucket struct {
	client       *client
	name, prefix string
	patience     time.Duration // for a request, beside the time for its bytes
}

// client is a minio.Client without its methods. A field of the type itself would link all 250 of them, 1.5 MB of the
// program, because package reflect could find them through an interface with a Bucket.
type client minio.Client

// core returns the requests of the client.
func (b *Bucket) core() minio.Core { return minio.Core{Client: (*minio.Client)(b.client)} }

// BucketOptions name a bucket. Credentials come from the environment, a shared file, a web identity or the role of the
// instance, in the order of minio-go.
type BucketOptions struct {
	URL      string // s3://BUCKET/PREFIX
	Endpoint string // host, host:port or URL; default: Amazon's
	Region   string // default: as the server says
	Insecure bool   // allow plain HTTP to a host that is not loopback
}

// OpenBucket checks the options; it sends no request.
func OpenBucket(o BucketOptions) (*Bucket, error) {
	at, err := url.Parse(o.URL)
	if err != nil || at.Scheme != "s3" || at.Host == "" || at.User != nil || at.RawQuery != "" {
		return nil, errors.New("--store takes a directory or s3://BUCKET/PREFIX, without a key")
	}
	host, secure, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	made, err := minio.New(host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: secure, Region: o.Region, MaxRetries: 3, Transport: transport(),
	})
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint %s: %w", host, err)
	}
	prefix := strings.Trim(at.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Bucket{(*client)(made), at.Host, prefix, 10 * time.Second}, nil
}

func endpoint(o BucketOptions) (host string, secure bool, err error) {
	host, secure = cmp.Or(o.Endpoint, "s3.amazonaws.com"), true
	if strings.Contains(host, "://") {
		u, err := url.Parse(host)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return "", false, errors.New("--s3-endpoint takes HOST:PORT or its http or https URL, without a path or a key")
		}
		host, secure = u.Host, u.Scheme == "https"
	}
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	if !secure && !o.Insecure && !isLoopback(name) {
		return "", false, fmt.Errorf("--s3-endpoint http://%s: observations would cross the network in plain text; "+
			"use https, or add --s3-insecure", host)
	}
	return host, secure, nil
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.ResponseHeaderTimeout = 10 * time.Second
	t.MaxIdleConnsPerHost = 32
	t.DisableCompression = true // the bytes are those that were stored
	return t
}

// String returns the bucket and its prefix as a URL.
func (b *Bucket) String() string { return Scheme + b.name + "/" + strings.TrimSuffix(b.prefix, "/") }

func (b *Bucket) key(id string) string { return b.prefix + "observations/" + id }

// within bounds a request that moves n bytes: 10 s, and 1 s for each MiB.
func (b *Bucket) within(ctx context.Context, n int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.patience+b.patience/10*time.Duration(n>>20))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumHeader = "X-Amz-Checksum-Crc32c"

func checksum(sum uint32) string {
	return base64.StdEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// put stores an object in one request. The server compares the checksums.
func (b *Bucket) put(ctx context.Context, key string, data *io.SectionReader, sha256 string, crc uint32) error {
	ctx, cancel := b.within(ctx, data.Size())
	defer cancel()
	sum := checksum(crc)
	info, err := b.core().PutObject(ctx, b.name, key, data, data.Size(), "", sha256,
		minio.PutObjectOptions{UserMetadata: map[string]string{checksumHeader: sum}, DisableContentSha256: true})
	if err != nil {
		return b.failed("store", err)
	}
	return b.compare(ctx, key, info, data.Size(), sum)
}

func hexSHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// putBytes is put of a few bytes.
func (b *Bucket) putBytes(ctx context.Context, key string, data []byte) error {
	return b.put(ctx, key, io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), hexSHA256(data),
		crc32.Checksum(data, castagnoli))
}

// compare checks size and checksum of what the server has, as it says.
func (b *Bucket) compare(ctx context.Context, key string, info minio.UploadInfo, size int64, sum string) error {
	at, err := b.core().StatObject(ctx, b.name, key, minio.StatObjectOptions{Checksum: true})
	if err != nil {
		return b.failed("check", err)
	}
	if at.Size != size {
		return fmt.Errorf("the object store has %d bytes of %d", at.Size, size)
	}
	for _, has := range []string{info.ChecksumCRC32C, at.ChecksumCRC32C} {
		if has != "" && has != sum {
			return errors.New("the object store has other bytes: its checksum differs")
		}
	}
	return nil
}

// upload is an object that is stored in parts.
type upload struct {
	b   *Bucket
	key string
	id  string
}

func (b *Bucket) begin(ctx context.Context, key string) (*upload, error) {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	id, err := b.core().NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{UserMetadata: map[string]string{
		"X-Amz-Checksum-Algorithm": "CRC32C", "X-Amz-Checksum-Type": "FULL_OBJECT",
	}})
	if err != nil {
		return nil, b.failed("begin to store", err)
	}
	return &upload{b, key, id}, nil
}

// part stores a part; they are numbered from 1.
func (u *upload) part(ctx context.Context, number int, data []byte) (minio.CompletePart, error) {
	ctx, cancel := u.b.within(ctx, int64(len(data)))
	defer cancel()
	crc := checksum(crc32.Checksum(data, castagnoli))
	p, err := u.b.core().PutObjectPart(ctx, u.b.name, u.key, u.id, number, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectPartOptions{
			Sha256Hex: hexSHA256(data), DisableContentSha256: true, CustomHeader: http.Header{checksumHeader: {crc}},
		})
	if err != nil {
		return minio.CompletePart{}, u.b.failed("store", err)
	}
	return minio.CompletePart{PartNumber: number, ETag: p.ETag, ChecksumCRC32C: p.ChecksumCRC32C}, nil
}

// complete makes the object of its parts.
func (u *upload) complete(ctx context.Context, parts []minio.CompletePart, size int64, sum uint32) error {
	ctx, cancel := u.b.within(ctx, size/16) // servers join parts far faster than they take them
	defer cancel()
	info, err := u.b.core().CompleteMultipartUpload(ctx, u.b.name, u.key, u.id, parts,
		minio.PutObjectOptions{UserMetadata: map[string]string{
			checksumHeader: checksum(sum), "X-Amz-Checksum-Type": "FULL_OBJECT",
		}})
	if err != nil {
		return u.b.failed("complete", err)
	}
	return u.b.compare(ctx, u.key, info, size, checksum(sum))
}

// abandon removes an object that nobody needs, and the parts of one that was not completed.
func (b *Bucket) abandon(ctx context.Context, key string) error {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	return errors.Join(unlessGone(b.core().RemoveIncompleteUpload(ctx, b.name, key)), b.remove(ctx, key))
}

// unlessGone returns nil for the error that there is no such upload: another process has aborted it.
func unlessGone(err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		return nil
	}
	return err
}

// get opens the bytes from an offset to another one, which is not included.
func (b *Bucket) get(ctx context.Context, key string, from, to int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if err := o.SetRange(from, to-1); err != nil {
		return nil, err
	}
	body, _, _, err := b.core().GetObject(ctx, b.name, key, o)
	if err != nil {
		return nil, b.failed("read", err)
	}
	return body, nil
}

// read copies the bytes from an offset to another one; it tries three times, since a server may end an answer early.
func (b *Bucket) read(ctx context.Context, key string, w io.Writer, from, to int64) (err error) {
	ctx, cancel := b.within(ctx, to-from)
	defer cancel()
	for range 3 {
		var body io.ReadCloser
		if body, err = b.get(ctx, key, from, to); err == nil {
			var n int64
			n, err = io.CopyN(w, body, to-from)
			_ = body.Close()
			if from += n; from == to {
				return nil
			}
			err = b.failed("read", err)
		}
		if errors.Is(err, errMissing) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (b *Bucket) remove(ctx context.Context, key string) error {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	err := b.core().RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	if err == nil {
		return nil
	}
	if err = b.failed("remove", err); errors.Is(err, errMissing) {
		return nil
	}
	return err
}

var errMissing = errors.New("the object is missing")

// failed says what could not be done. minio-go's errors hold no keys.
func (b *Bucket) failed(what string, err error) error {
	switch r := minio.ToErrorResponse(err); {
	case r.Code == minio.NoSuchKey:
		return errMissing
	case r.Code != "" && r.StatusCode != 0:
		short := fmt.Sprintf("the object store answered %d %s", r.StatusCode, r.Code)
		return &bucketError{fmt.Sprintf("%s in %s: %s: %s", what, b, short, r.Message), short, err}
	}
	return &bucketError{fmt.Sprintf("%s in %s: %v", what, b, err), "the object store is not available", err}
}

// bucketError has a text for the operator, and a short one for clients.
type bucketError struct {
	text, short string
	err         error
}

func (e *bucketError) Error() string { return e.text }
func (e *bucketError) Unwrap() error { return e.err }

// Short says what clients may know.
func (e *bucketError) Short() string { return e.short }

// Check stores an object beside the observations, reads it back and deletes it. skew is what the server's clock is ahead
// of ours, within a second; compares is false if it stores bytes whose checksum is wrong. The error says what failed.
func (b *Bucket) Check(ctx context.Context) (skew time.Duration, compares bool, err error) {
	key, data := b.prefix+"check/"+rand.Text(), []byte("written by mcp-funnel doctor\n")
	began := time.Now()
	if err = b.putBytes(ctx, key, data); err != nil {
		return 0, false, err
	}
	defer func() {
		err = errors.Join(err, b.remove(ctx, key))
	}()
	var back bytes.Buffer
	if err = b.read(ctx, key, &back, 0, int64(len(data))); err == nil && !bytes.Equal(back.Bytes(), data) {
		err = errors.New("the object store has other bytes than were stored")
	}
	at, stat := b.core().StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err = errors.Join(err, stat); err != nil {
		return 0, false, err
	}
	_, wrong := b.core().PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), "", hexSHA256(data),
		minio.PutObjectOptions{UserMetadata: map[string]string{checksumHeader: checksum(1)}, DisableContentSha256: true})
	return at.LastModified.Sub(began).Truncate(time.Second), wrong != nil, nil
}

// Plain reports whether requests cross the network without TLS.
func (b *Bucket) Plain() bool {
	return b.core().EndpointURL().Scheme == "http" && !isLoopback(b.core().EndpointURL().Hostname())
}

// uploads lists those that were begun and not completed.
func (b *Bucket) uploads(ctx context.Context) <-chan minio.ObjectMultipartInfo {
	return b.core().ListIncompleteUploads(ctx, b.name, b.key(""), true)
}

// old lists the objects of an age, a thousand at a time.
func (b *Bucket) old(ctx context.Context, age time.Duration) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var ids []string
		for o := range b.core().ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.key("")}) {
			if o.Err != nil {
				yield(nil, b.failed("list", o.Err))
				return
			}
			if time.Since(o.LastModified) > age {
				ids = append(ids, strings.TrimPrefix(o.Key, b.key("")))
			}
			if len(ids) == 1000 {
				if !yield(ids, nil) {
					return
				}
				ids = nil
			}
		}
		if len(ids) > 0 {
			yield(ids, nil)
		}
	}
}
